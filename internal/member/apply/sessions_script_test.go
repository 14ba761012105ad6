package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// paths is a member's proposals on several ways into the global log, and the table of what took
// effect. A script says what goes which way, and when it is applied.
type paths struct {
	t        *testing.T
	session  protocol.Session
	proposed *intake.Proposals
	table    *Sessions
	batches  map[string]*intake.Batch
}

func (p *paths) live(life uint64, shared bool, mutant mutant.Name) {
	p.session = protocol.NewSession(1, protocol.LogID{}, life, shared)
	p.proposed = &intake.Proposals{MaxBatch: 100, MaxBytes: 1 << 20, Mutant: mutant}
	p.proposed.Free = func(b *intake.Batch) { p.proposed.Settled(0, b) }
}

// take proposes a batch. before says that something of an earlier incarnation may still take effect.
func (p *paths) take(name string, count int, before bool) string {
	for range count {
		_, err := p.proposed.Add(func() time.Duration { return 0 }, []byte(name), func(any, error) {})
		require.NoError(p.t, err)
	}
	b := p.proposed.Take()
	if before {
		b.Entry.Low = 0
	}
	b.Seal(p.session, b.Entry.ID.Seq, b.Entry.Low)
	p.batches[name] = b
	return fmt.Sprintf("%s: numbers %d to %d, low %d\n", name, b.Entry.ID.Seq, int(b.Entry.ID.Seq)+count-1, b.Entry.Low)
}

// apply applies an entry with a batch, which is settled then if it is of this incarnation.
func (p *paths) apply(name string, instance protocol.InstanceID) string {
	b := p.batches[name]
	what := "refused"
	if p.table.Admit(instance, &b.Entry) {
		what = "takes effect"
	}
	if b.Free != nil && b.Entry.ID.Session == p.session {
		b.Fail(member.ErrResultUnknown)
		b.Free = nil
	}
	return fmt.Sprintf("%s through %d: %s\n", name, instance, what)
}

func (p *paths) states() string {
	var out strings.Builder
	for _, st := range p.table.States() {
		shared := ""
		if st.Session.Shared() {
			shared = " shared"
		}
		fmt.Fprintf(&out, "instance %d life %d%s: low %d, done %v\n", st.Instance, st.Session.Rank()&(1<<31-1), shared,
			st.Low, st.Done)
	}
	return out.String()
}

// restore takes the table from a snapshot of itself.
func (p *paths) restore() error {
	content, err := json.Marshal(p.table.States())
	if err != nil {
		return err
	}
	var states []member.SessionState
	if err := json.Unmarshal(content, &states); err != nil {
		return err
	}
	mutant := p.table.Mutant
	p.table = NewSessions(states)
	p.table.Mutant = mutant
	return nil
}

func (p *paths) run(d *datadriven.TestData) (out string, err error) {
	for line := range strings.Lines(d.Input) {
		words := append(strings.Fields(line), "", "")
		var n int
		_, _ = fmt.Sscan(words[2], &n) // none: 0
		switch words[0] {
		case "life", "old-life":
			_, err = fmt.Sscan(words[1], &n)
			p.live(uint64(n), words[0] == "life", mutant.Name(words[2]))
		case "take":
			out += p.take(words[1], max(1, n), false)
		case "take-after-earlier":
			out += p.take(words[1], 1, true)
		case "apply":
			out += p.apply(words[1], protocol.InstanceID(n))
		case "give-up":
			p.batches[words[1]].Fail(member.ErrMaybeCommitted)
			p.batches[words[1]].Free = nil
		case "retire-all-but":
			_, err = fmt.Sscan(words[1], &n)
			p.table.Retire([]protocol.InstanceID{protocol.InstanceID(n)})
		case "break":
			p.table.Mutant = mutant.Name(words[1])
		case "snapshot":
			err = p.restore()
		case "table":
			out += p.states()
		default:
			err = fmt.Errorf("%q", line)
		}
		if err == nil {
			err = p.table.Check()
		}
		if err == nil {
			err = p.proposed.Check()
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// TestSessionScripts plays what may go wrong if a member's commands go several ways.
func TestSessionScripts(t *testing.T) {
	datadriven.RunTest(t, "testdata/sessions", func(t *testing.T, d *datadriven.TestData) string {
		p := &paths{t: t, table: NewSessions(nil), batches: map[string]*intake.Batch{}}
		p.live(1, true, "")
		out, err := p.run(d)
		if err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		return out
	})
}
