package epochs

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

// TestScripts runs the scripts under testdata. -rewrite writes their output again.
//
//	new voters=(1,2,3) [policy=P] [slots=(MIN,MAX)] [ban=(FIRST,LONGEST)]
//	    a history before slot 1; simple, 16 to 16 slots, bans of 1 to 8 epochs
//	run [epochs=N] [full=IDS] [half=IDS] [dead=IDS]
//	    the current epoch and those after it end. A leader that is full has commands in each of its slots, one
//	    that is half in each other. All others have an empty value at the end, except for those that are dead
//	entry KIND [leader=ID] [last] [voters=IDS] [learners=IDS]
//	    an entry at the next slot, or at the next, or last, one of a leader: batch, config, empty or noop
//	pass [TO]   no values up to a slot, or to the end of the epoch
//	turns       the leaders of the first slots of the epoch, until they repeat
//	buckets     the number of buckets of each leader
//	records     the records of the voters
//
// An epoch is printed as: its slots; the number of each leader's slots; the voters that do not lead; Lead and its
// epoch.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

type script struct {
	t *testing.T
	d *datadriven.TestData
	h *History
}

func (s *script) run(t *testing.T, d *datadriven.TestData) (out string) {
	s.t, s.d = t, d
	defer func() {
		if p := recover(); p != nil {
			out = fmt.Sprintf("panic: %v\n", p)
		}
	}()
	switch d.Cmd {
	case "new":
		return s.begin()
	case "run":
		return s.epochs()
	case "entry":
		return s.entry()
	case "pass":
		to := s.h.Epoch().Last
		if len(d.CmdArgs) > 0 {
			to = protocol.Index(s.number(d.CmdArgs[0].Key))
		}
		s.h.Pass(to)
		return s.now()
	case "turns":
		return strings.Trim(fmt.Sprint(s.turns()), "[]") + "\n"
	case "buckets":
		for _, id := range s.h.Epoch().Leaders {
			out += fmt.Sprintf("%s: %d\n", id, len(s.h.Epoch().Owned(id)))
		}
		return out
	case "records":
		return s.records()
	}
	d.Fatalf(t, "unknown command")
	return ""
}

func (s *script) begin() string {
	set := Settings{MinSlots: 16, MaxSlots: 16, Ban: 1, MaxBan: 8}
	if a, ok := s.d.Arg("policy"); ok {
		for set.Policy.String() != a.Vals[0] {
			set.Policy++
		}
	}
	if a, ok := s.d.Arg("slots"); ok {
		set.MinSlots, set.MaxSlots = s.number(a.Vals[0]), s.number(a.Vals[1])
	}
	set.EqualShares = s.d.HasArg("equal")
	if a, ok := s.d.Arg("ban"); ok {
		set.Ban, set.MaxBan = s.number(a.Vals[0]), s.number(a.Vals[1])
	}
	s.h = New(set, configOf(s.ids("voters"), nil))
	return s.now()
}

func (s *script) epochs() (out string) {
	n := 1
	s.d.MaybeScanArgs(s.t, "epochs", &n)
	full, half, dead := s.ids("full"), s.ids("half"), s.ids("dead")
	for range n {
		e := s.h.Epoch()
		for i := s.h.Next(); i <= e.Last; i++ {
			segment := e.SegmentOf(i)
			switch id := segment.Leader(); {
			case slices.Contains(full, id), slices.Contains(half, id) && segment.Before(i)%2 == 0:
				s.h.Apply(&protocol.Entry{Index: i, Kind: protocol.EntryBatch})
			case i == segment.Last() && !slices.Contains(dead, id):
				s.h.Apply(&protocol.Entry{Index: i, Kind: protocol.EntryEmpty})
			}
		}
		s.h.Pass(e.Last)
		out += s.now()
	}
	return out
}

func (s *script) entry() string {
	e := protocol.Entry{Index: s.h.Next()}
	if ids := s.ids("leader"); len(ids) > 0 {
		segment, ok := s.h.Epoch().Segment(ids[0])
		require.True(s.t, ok)
		if e.Index = segment.After(e.Index - 1); s.d.HasArg("last") {
			e.Index = segment.Last()
		}
	}
	switch s.d.CmdArgs[0].Key {
	case "batch":
		e.Kind = protocol.EntryBatch
	case "config":
		e.Kind, e.Payload = protocol.EntryConfig, protocol.EncodeConfig(configOf(s.ids("voters"), s.ids("learners")))
	case "empty":
		e.Kind = protocol.EntryEmpty
	case "noop":
		e.Kind = protocol.EntryNoop
	}
	s.h.Apply(&e)
	return s.now()
}

// configOf is a configuration of members, in any order.
func configOf(voters, learners []protocol.MemberID) (c protocol.Config) {
	for _, id := range slices.Sorted(slices.Values(slices.Concat(voters, learners))) {
		c.Members = append(c.Members, protocol.Member{ID: id, Learner: slices.Contains(learners, id)})
	}
	return c
}

func (s *script) now() (out string) {
	require.NoError(s.t, s.h.Check())
	e := s.h.Epoch()
	if e == nil {
		return "nothing is known\n"
	}
	out = fmt.Sprintf("epoch %d, slots %d…%d:", e.Number, e.First, e.Last)
	if s.h.Next() > e.First {
		out = fmt.Sprintf("epoch %d, slots %d…%d, %d is next:", e.Number, e.First, e.Last, s.h.Next())
	}
	for _, id := range e.Leaders {
		segment, _ := e.Segment(id)
		out += fmt.Sprintf(" %s has %d,", id, segment.Len())
	}
	for _, id := range e.Voters {
		if !e.Leads(id) {
			out += fmt.Sprintf(" %s none,", id)
		}
	}
	leader, since := s.h.Lead()
	return out + fmt.Sprintf(" %s is first since %d\n", leader, since)
}

func (s *script) turns() (ids []protocol.MemberID) {
	for _, at := range s.h.Epoch().turns {
		ids = append(ids, s.h.Epoch().Leaders[at])
	}
	return ids
}

func (s *script) records() (out string) {
	for _, r := range s.h.records {
		out += fmt.Sprintf("%s: suspected in %d, ban %d of %d, share %d\n", r.id, r.suspected, r.left, r.penalty, r.share)
	}
	return out
}

func (s *script) ids(arg string) (ids []protocol.MemberID) {
	if a, ok := s.d.Arg(arg); ok && a.Vals[0] != "" {
		for _, v := range a.Vals {
			ids = append(ids, protocol.MemberID(s.number(v)))
		}
	}
	return ids
}

func (s *script) number(text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(s.t, err)
	return n
}
