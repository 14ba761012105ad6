package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// planned is the part of a member that finds plans and carries them out, with a state machine that
// applies when the script says so. A start forgets all of it but what was committed.
type planned struct {
	t         *testing.T
	begin     member.Meta
	logs      map[protocol.InstanceID][]protocol.Entry
	queue     *apply.ApplyQueue
	waiting   []apply.ApplyItem // as they came out of the queue
	applier   *apply.Applier
	instances *Instances[protocol.InstanceID]
	host      *mail
	sm        *membertest.History
	config    protocol.Config // with which the log begins, or behind the last seal that was carried out
	mutant    mutant.Name
}

// start begins with the instances of the first moment.
func (s *planned) start() {
	s.sm = &membertest.History{}
	s.applier = apply.NewApplier(s.sm, s.begin, membertest.Session, 0, nil)
	s.waiting = nil
	s.queue = &apply.ApplyQueue{Limit: 1 << 20, Plans: apply.NewPlanner(&s.begin)}
	found := &FoundInstances{cursor: s.begin.Cursor.Clone(), pending: map[protocol.InstanceID]*Pending{}}
	for _, id := range s.begin.Cursor.Instances() {
		found.InForce = append(found.InForce, member.InstanceLog{Instance: id})
	}
	s.applier.Break(s.mutant)
	s.queue.Plans.Break(s.mutant)
	s.instances = NewInstances[protocol.InstanceID](found)
	s.instances.Mutant = s.mutant
	s.host = &mail{got: map[protocol.InstanceID][]uint64{}}
	require.NoError(s.t, s.instances.Start(s.host))
}

// entry makes an entry of a word: b a batch, c7 a membership with member 7, s5 a skip to round 5, r4 a
// reshape to 4 instances, x4 a seal before 4 merged instances, x0 one before a single instance, each under the next
// profile; y4 and y0 the same for an operator who knows an earlier profile.
func (s *planned) entry(instance protocol.InstanceID, word string) {
	n := 0
	if len(word) > 1 {
		n = s.number(word[1:])
	}
	log := s.logs[instance]
	index := protocol.Index(len(log) + 1)
	var e protocol.Entry
	switch word[0] {
	case 'b':
		e = membertest.EntryOf(index,
			membertest.Sealed(1000*uint64(instance)+uint64(index), fmt.Sprintf("%d/%d", instance, index)))
	case 'c':
		e = protocol.Entry{Kind: protocol.EntryConfig,
			Payload: protocol.EncodeConfig(protocol.Config{Members: []protocol.Member{{ID: protocol.MemberID(n)}}})}
		e.SealPayload()
	case 's':
		e = protocol.NewSkip(protocol.Round(n))
	case 'r':
		e = protocol.NewReshape(n)
	case 'x', 'y':
		version := s.config.Profile.Version + 1
		if word[0] == 'y' {
			version--
		}
		e = protocol.NewSeal(protocol.Seal{Profile: protocol.Profile{Version: version,
			Core: fmt.Sprint("core of ", n)},
			Members:   s.config,
			Instances: max(1, n), Merged: n > 0})
	}
	e.Seal(index, 1, make([]byte, protocol.HeadSize))
	s.logs[instance] = append(log, e)
}

func (s *planned) number(text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(s.t, err)
	return n
}

// commit has an instance commit some of what its log has, as far as an index.
func (s *planned) commit(instance protocol.InstanceID, from, to int) string {
	entries := append([]protocol.Entry(nil), s.logs[instance][from-1:to]...)
	s.queue.Push(apply.ApplyItem{Commit: intake.CommittedEntries{Instance: instance, Entries: entries}})
	s.waiting = append(s.waiting, s.queue.Take(nil)...)
	return s.carryOut()
}

func (s *planned) carryOut() string {
	var b strings.Builder
	for plan := s.queue.TakePlan(); plan != nil; plan = s.queue.TakePlan() {
		changed, err := s.instances.Carry(plan)
		require.NoError(s.t, err)
		require.NoError(s.t, s.instances.Check())
		fmt.Fprintf(&b, "round %d: begin %v, end %v", plan.At.Next.Round, plan.Begin, plan.End)
		for _, id := range plan.Begin {
			base := plan.Meta.Base(id)
			fmt.Fprintf(&b, "; %d after round %d with members %v", id, base.Round, base.Config.All())
		}
		if !changed {
			b.WriteString(" (not carried out now)")
		}
		b.WriteString("\n")
	}
	for _, v := range s.queue.TakeVoid() {
		fmt.Fprintf(&b, "void: seals up to %d of instance %d\n", v.Index, v.Instance)
	}
	return b.String() + s.asked()
}

// asked is what the instances asked of the member.
func (s *planned) asked() (out string) {
	for _, line := range s.host.log {
		out += line + "\n"
	}
	s.host.log = nil
	return out
}

// closed says that an instance is closed.
func (s *planned) closed(id protocol.InstanceID) string {
	plan, err := s.instances.Closed(id)
	require.NoError(s.t, err)
	require.NoError(s.t, s.instances.Check())
	if plan == nil {
		return s.asked()
	}
	s.config = plan.Meta.Config
	return fmt.Sprintf("carried out: instances %v, core %q\n", plan.At.Instances(), s.config.Profile.Core) + s.asked()
}

// apply lets the state machine apply at most so many of the items that wait. It stops at a snapshot.
func (s *planned) apply(most int) string {
	for range most {
		if len(s.waiting) == 0 || s.waiting[0].Install != nil {
			break
		}
		require.NoError(s.t, s.applier.Apply(s.waiting[0].Commit))
		s.waiting = s.waiting[1:]
	}
	require.NoError(s.t, s.applier.Check())
	at := s.applier.Cursor()
	require.NoError(s.t, s.queue.Plans.Check(&at))
	return s.where()
}

func (s *planned) where() string {
	at := s.applier.Cursor()
	return fmt.Sprintf("in force %v; the state is at round %d of %v: %s\n", s.instances.ids, at.Next.Round, at.Instances(),
		strings.Join(s.sm.Lines, " "))
}

// ahead is a snapshot of a member that has applied all that was committed here up to these indexes.
func (s *planned) ahead(indexes []string) member.Meta {
	whole := apply.NewApplier(&membertest.History{}, s.begin, membertest.Session, 0, nil)
	for i := len(indexes) - 1; i >= 0; i-- { // an instance may begin only with what the first one has
		id, to, _ := strings.Cut(indexes[i], "/")
		instance := protocol.InstanceID(s.number(id))
		require.NoError(s.t,
			whole.Apply(intake.CommittedEntries{Instance: instance, Entries: s.logs[instance][:s.number(to)]}))
	}
	require.NoError(s.t, whole.Check())
	return whole.Meta()
}

// install has the state machine take over the snapshot that waits in the queue.
func (s *planned) install(meta member.Meta) string {
	require.NotNil(s.t, s.waiting[0].Install)
	s.waiting = s.waiting[1:]
	require.NoError(s.t, s.applier.Install(meta, strings.NewReader("")))
	s.queue.Follow(&meta)
	found := s.carryOut()
	s.queue.Installed()
	return found + s.carryOut() + s.where()
}

func (s *planned) run(d *datadriven.TestData) string {
	words := make([]string, len(d.CmdArgs))
	for i, a := range d.CmdArgs {
		words[i] = a.Key
	}
	switch d.Cmd {
	case "begin":
		members := []protocol.Member{{ID: 1}}
		*s = planned{t: s.t, begin: member.Bootstrap(order.Begin(s.number(words[0]), !d.HasArg("alone")), members),
			logs: map[protocol.InstanceID][]protocol.Entry{}}
		if d.HasArg("mutant") {
			d.ScanArgs(s.t, "mutant", (*string)(&s.mutant))
		}
		s.begin.Found(protocol.Profile{Version: 2})
		s.config = s.begin.Config
		s.start()
	case "restart":
		s.start()
	case "log":
		instance := protocol.InstanceID(s.number(words[0]))
		for _, w := range words[1:] {
			s.entry(instance, w)
		}
		return fmt.Sprintf("%d entries\n", len(s.logs[instance]))
	case "commit":
		return s.commit(protocol.InstanceID(s.number(words[0])), s.number(words[1]), s.number(words[2])) + s.where()
	case "closed":
		return s.closed(protocol.InstanceID(s.number(words[0]))) + s.where()
	case "apply":
		most := 1 << 30
		if len(words) > 0 {
			most = s.number(words[0])
		}
		return s.apply(most)
	case "accept": // an instance's core accepts a snapshot
		instance := protocol.InstanceID(s.number(words[0]))
		s.waiting = slices.DeleteFunc(s.waiting, func(it apply.ApplyItem) bool {
			return it.Commit.Instance == instance && len(it.Commit.Entries) > 0
		})
		s.queue.PushInstall(instance, &protocol.Base{})
		s.waiting = append(s.waiting, s.queue.Take(nil)...)
	case "install":
		return s.install(s.ahead(words))
	default:
		s.t.Fatalf("command %q", d.Cmd)
	}
	return s.where()
}

func TestPlans(t *testing.T) {
	s := &planned{t: t}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s.t = t
		s.runFile(path)
	})
}

func (s *planned) runFile(path string) {
	datadriven.RunTest(s.t, path, func(t *testing.T, d *datadriven.TestData) string {
		s.t = t
		return s.run(d)
	})
}
