package order

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// TestScripts runs the scripts under testdata; their output is the entries that each member places in the global log.
// -rewrite writes it again.
//
//	begin [instances=N] [members=(a,b)]   empty logs; each member has a Niagara
//	begin alone [members=(a,b)]           the same, with one instance and without rounds
//	log INSTANCE KIND…      appends to the instance's log: b3 a batch of 3 commands (b: of 1),
//	                        n a noop, c a configuration, s7 SkipTo(7), r2 Reshape to 2,
//	                        x a seal, to one instance without rounds, x2 to two that are merged, z7 a seal to one
//	                        instance that ends this one at index 7
//	give MEMBER INSTANCE [FROM] TO    the member learns that entries FROM … TO are committed
//	                        (all up to TO that it was not given yet) and prints what Next places
//	install MEMBER FROM     Install of the other member's cursor, and Next
//	seal MEMBER yes|no      says whether the seal counts at whose place the member stands, and prints what Next places
//	restart MEMBER          a new Niagara that continues at the member's cursor
//	cursor MEMBER
//
// What is placed is printed as instance/index kind @first position, then its place.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{logs: map[protocol.InstanceID][]protocol.Entry{}, members: map[string]*Niagara{}}
		datadriven.RunTest(t, path, s.run)
	})
}

type script struct {
	t       *testing.T
	logs    map[protocol.InstanceID][]protocol.Entry
	members map[string]*Niagara
}

func (s *script) run(t *testing.T, d *datadriven.TestData) (out string) {
	s.t = t
	defer func() {
		if p := recover(); p != nil {
			text, ok := p.(string)
			if !ok || !strings.HasPrefix(text, "order:") {
				panic(p)
			}
			out = "panic: " + text + "\n"
		}
	}()
	if d.Cmd == "begin" {
		return s.begin(d)
	}
	var words []string
	for _, a := range d.CmdArgs {
		words = append(words, a.Key)
	}
	if d.Cmd == "log" {
		return s.log(words)
	}
	m := s.members[words[0]]
	switch d.Cmd {
	case "give":
		return s.give(m, words[1:])
	case "seal":
		return s.seal(m, words[1] == "yes")
	case "install":
		m.Install(s.members[words[1]].Cursor())
		return s.next(m)
	case "restart":
		s.members[words[0]] = NewNiagara(m.Cursor())
		return cursorText(m.Cursor())
	case "cursor":
		return cursorText(m.Cursor())
	}
	d.Fatalf(t, "unknown command")
	return ""
}

func (s *script) begin(d *datadriven.TestData) string {
	instances, members := 1, []string{"a"}
	if d.HasArg("instances") {
		d.ScanArgs(s.t, "instances", &instances)
	}
	if a, ok := d.Arg("members"); ok {
		members = a.Vals
	}
	for _, name := range members {
		s.members[name] = NewNiagara(Begin(instances, !d.HasArg("alone")))
	}
	return "ok\n"
}

func (s *script) log(words []string) string {
	instance := protocol.InstanceID(s.number(words[0]))
	for _, w := range words[1:] {
		n := 1
		if len(w) > 1 {
			n = s.number(w[1:])
		}
		var e protocol.Entry
		switch w[0] {
		case 'b':
			e = protocol.Entry{Kind: protocol.EntryBatch, Count: uint32(n)}
		case 'n':
			e = protocol.Entry{Kind: protocol.EntryNoop}
		case 'c':
			e = protocol.Entry{Kind: protocol.EntryConfig}
		case 's':
			e = protocol.NewSkip(protocol.Round(n))
		case 'r':
			e = protocol.NewReshape(n)
		case 'x', 'z':
			seal := protocol.Seal{Instances: n, Merged: n > 1, Profile: protocol.Profile{Version: 2},
				Members: protocol.Config{Members: []protocol.Member{{ID: 1}}}}
			if w[0] == 'z' {
				seal.Instances, seal.Merged = 1, false
			}
			if e = protocol.NewSeal(seal); w[0] == 'z' {
				e.Low = uint64(n)
			}
		default:
			s.t.Fatalf("entry %q", w)
		}
		e.Index, e.Term = protocol.Index(len(s.logs[instance])+1), 1
		s.logs[instance] = append(s.logs[instance], e)
	}
	return fmt.Sprintf("%d entries\n", len(s.logs[instance]))
}

func (s *script) number(text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(s.t, err)
	return n
}

func (s *script) give(m *Niagara, words []string) string {
	instance := protocol.InstanceID(s.number(words[0]))
	to := s.number(words[len(words)-1])
	from := int(m.Added(instance)) + 1
	if len(words) > 2 {
		from = s.number(words[1])
	}
	m.Add(instance, slices.Clone(s.logs[instance][from-1:to]))
	return s.next(m)
}

func (s *script) seal(m *Niagara, counts bool) string {
	open := m.Sealing()
	require.NotNil(s.t, open)
	p := m.Seal(counts)
	require.Equal(s.t, counts, p != nil)
	if p == nil {
		return s.next(m)
	}
	require.True(s.t, p.Plan.Seals())
	sealed := "sealed:"
	for _, point := range p.Plan.Ended {
		sealed += fmt.Sprintf(" %d/%d", point.Instance, point.Index)
	}
	return fmt.Sprintf("%s, instances %v @%d\n", sealed, p.Plan.At.Instances(), p.First) + s.next(m)
}

func (s *script) next(m *Niagara) string {
	var b strings.Builder
	require.NoError(s.t, m.Check())
	for _, p := range m.Next(nil) {
		if p.Plan != nil && p.Instance != 0 {
			fmt.Fprintf(&b, "%d/%d %v @%d\n", p.Instance, p.Entry.Index, p.Entry.Kind, p.First)
		}
		if p.Plan != nil && p.Entry.Kind == protocol.EntryReshape {
			fmt.Fprintf(&b, "after round %d: instances %v @%d\n", p.Plan.At.Next.Round-1, p.Plan.At.Instances(), p.First)
			continue
		}
		fmt.Fprintf(&b, "%d/%d %v @%d\n", p.Instance, p.Entry.Index, p.Entry.Kind, p.First)
	}
	require.NoError(s.t, m.Check())
	if m.Sealing() != nil {
		require.Empty(s.t, m.Next(nil))
		b.WriteString("at the place of a seal\n")
	}
	return b.String() + turnText(m.Cursor())
}

func turnText(c Cursor) string {
	return fmt.Sprintf("next: round %d of instance %d\n", c.Next.Round, c.Next.Instance)
}

func cursorText(c Cursor) string {
	var b strings.Builder
	fmt.Fprintf(&b, "position %d\n", c.Position)
	for _, p := range c.Points {
		fmt.Fprintf(&b, "instance %d: index %d, %d rounds\n", p.Instance, p.Index, p.Round)
	}
	if c.Reshape > 0 {
		fmt.Fprintf(&b, "%d instances from the next round on\n", c.Reshape)
	}
	return b.String() + turnText(c)
}
