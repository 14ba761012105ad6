package iss_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/protocol"
)

// proposer steps the core of member 1 of three, which has begun its segment.
type proposer struct {
	t    *testing.T
	core protocol.Core
	seq  uint64 // of the last write
	last uint64 // the last proposal's number
	wake time.Duration
}

func newProposer(t *testing.T, change func(*protocol.Settings)) *proposer {
	three := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}
	set := epochs.Settings{MinSlots: 64, MaxSlots: 64, Policy: epochs.Combined, Ban: 2, MaxBan: 8}
	core, err := with(set, change)(protocol.Session{Member: 1}, protocol.Recovered{Base: protocol.Base{Config: three}})
	require.NoError(t, err)
	p := &proposer{t: t, core: core}
	p.step(0, protocol.Tick{Random: 1})
	p.written(0)
	return p
}

// step returns how many entries were sent to member 2.
func (p *proposer) step(now time.Duration, in protocol.Input) (entries int) {
	var out protocol.Effects
	p.core.Step(now, in, &out)
	require.NoError(p.t, p.core.Check())
	p.seq, p.wake = max(p.seq, out.Seq), out.WakeAt
	for _, m := range out.Send {
		if m.To == 2 {
			entries += len(m.Entries)
		}
	}
	return entries
}

func (p *proposer) propose(now time.Duration, bytes int) int {
	p.last++
	e := protocol.Entry{Kind: protocol.EntryBatch, Count: 1, Low: p.last,
		ID: protocol.ProposalID{Session: protocol.Session{Member: 1, Incarnation: 1}, Seq: p.last}}
	e.Payload = protocol.AppendCommand(nil, make([]byte, bytes))
	e.SealPayload()
	e.Seal(0, 0, make([]byte, protocol.HeadSize))
	return p.step(now, protocol.Propose{Entries: []protocol.Entry{e}})
}

func (p *proposer) written(now time.Duration) int {
	return p.step(now, protocol.Persisted{Seq: p.seq})
}

const at = time.Millisecond

// A frame waits while the disk writes earlier entries, and takes along what is proposed meanwhile.
func TestFramesGatherWhileTheDiskWrites(t *testing.T) {
	p := newProposer(t, nil)
	require.Equal(t, 1, p.propose(10*at, 1), "the disk does nothing")
	require.Zero(t, p.propose(10*at+100, 1))
	require.Equal(t, 11*at, p.wake)
	require.Zero(t, p.propose(10*at+200, 1))
	require.Equal(t, 2, p.written(10*at+300))
	require.Zero(t, p.wake)
}

// It waits for a millisecond: the disk may be slow.
func TestFramesDoNotWaitForASlowDisk(t *testing.T) {
	p := newProposer(t, nil)
	require.Equal(t, 1, p.propose(10*at, 1))
	require.Zero(t, p.propose(10*at+100, 1))
	require.Equal(t, 1, p.step(11*at, protocol.Wake{}))
	require.Zero(t, p.wake)
}

// Only small frames wait, and only if they can become larger.
func TestFramesThatDoNotWait(t *testing.T) {
	p := newProposer(t, nil)
	require.Equal(t, 1, p.propose(10*at, 1))
	require.Equal(t, 1, p.propose(10*at+100, 64<<10))

	p = newProposer(t, func(c *protocol.Settings) { c.MaxFrameEntries = 1 })
	require.Equal(t, 1, p.propose(10*at, 1))
	require.Equal(t, 1, p.propose(10*at+100, 1))

	p = newProposer(t, nil)
	require.Equal(t, 1, p.propose(10*at, 1))
	p.step(10*at+100, &protocol.Message{Type: iss.MsgAccepted, Instance: 1, From: 2, To: 1, Term: 1,
		Part: &iss.Part{Segment: 1, Slot: 1}})
	require.Equal(t, 1, p.propose(10*at+200, 1), "no frame is in flight")
}
