package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/protocol"
)

// judged enables the judge of N7 from now on.
func (s *script) judged() { s.Merging = s.Set.MergeTime() }

// TestADecidedSlotThatWaitsTooLongIsFound: an instance has a leader that never skips. So the decided slots of another
// one are not executed (docs/internals/niagara.md, N7).
func TestADecidedSlotThatWaitsTooLongIsFound(t *testing.T) {
	s := weaveStage(t, 3)
	s.lead(1, 1, 1)
	s.judged()
	s.onlyIn(2, func(m *protocol.Message) bool { return len(m.Entries) == 0 })
	s.stuck(func() *history.Operation { return s.putIn(1, 1) })
	s.Run(s.Now() + 2*s.Merging)
	require.ErrorContains(t, s.Broken, "N7")
}

// TestAnInstanceThatBeginsElectsFirst: new instances have no leader yet, and nothing is executed until they have one.
// N7 requires "a leader in each instance".
func TestAnInstanceThatBeginsElectsFirst(t *testing.T) {
	s := weaveStage(t, 3)
	s.lead(1, 1, 1)
	s.judged()
	s.onlyIn(4, func(m *protocol.Message) bool { return m.Type != message.PreVote })
	s.Member(1).Step(protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(4)}})
	s.until("there is a fourth instance", func() bool { return len(s.Member(1).InForce) == 4 })
	began := s.Now()
	op := s.stuck(func() *history.Operation { return s.putIn(1, 1) })
	s.Run(began + s.Merging)
	require.False(t, s.acked(op))
	s.Pass = nil
	s.mustAck(op)
	s.Run(s.Now() + 3*s.Merging)
	s.passes()
}
