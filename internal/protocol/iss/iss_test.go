package iss_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
)

// One client writes at one member, so its leader has far more slots than the others, whose segments end first. No
// proposal waits for longer than two heartbeats.
func TestServesOneClient(t *testing.T) {
	for busy := range protocol.MemberID(3) {
		t.Run(fmt.Sprint(busy+1), func(t *testing.T) {
			t.Parallel()
			net := conformance.NewNet(t, 3, 1, iss.Codec, factory(nil))
			net.Options = conformance.Options{Skips: true, Derive: deriveShort}
			serves(t, net, busy+1)
		})
	}
}

func serves(t *testing.T, net *conformance.Net, busy protocol.MemberID) {
	net.Committed(busy, 10)
	for range 300 {
		e := net.Propose(busy, 10)
		net.Settle()
		for waited := 0; net.Took(e) == 0 || net.Node(busy).Applied < net.Took(e); waited++ {
			require.Less(t, waited, 20, "%s", net.Node(busy).Core)
			for _, n := range net.Nodes {
				net.Tick(n.ID, conformance.Pace)
			}
			net.Settle()
		}
	}
}

// A member notices that it forgot its log at the first message, even before its first tick: a member without a log
// waits for links first, and messages queue up meanwhile.
func TestFindsOutAtOnceThatItForgot(t *testing.T) {
	voters := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}
	for name, config := range map[string]protocol.Config{"voter": voters, "joiner": {}} {
		t.Run(name, func(t *testing.T) {
			core, err := factory(nil)(protocol.Session{Member: 1}, protocol.Recovered{Base: protocol.Base{Config: config}})
			require.NoError(t, err)
			beat := &protocol.Message{Type: iss.MsgBeat, Instance: 1, From: 2, To: 1, Term: 1, Part: &iss.Part{Hint: 4}}
			var out protocol.Effects
			core.Step(0, beat, &out)
			require.Equal(t, &protocol.Forgot{Leader: 2, Term: 1, Acked: 4}, out.Forgot)
		})
	}
}

// Member 1 asks for promises in the segment of a member that is silent. Member 2 has promised completely. While parts
// of 3's promise arrive, 1 sends 2 its progress, so that 2 does not take a ballot itself.
func TestKeepsThoseWaitingThatPromised(t *testing.T) {
	five := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}, {ID: 5}}}
	core, err := factory(nil)(protocol.Session{Member: 1}, protocol.Recovered{Base: protocol.Base{Config: five}})
	require.NoError(t, err)
	step := func(now int, in protocol.Input) (sent []*protocol.Message) {
		var out protocol.Effects
		core.Step(time.Duration(now)*conformance.Pace, in, &out)
		require.NoError(t, core.Check())
		return append(out.Send, out.Release...)
	}
	// sentTo finds the message that was sent to a member about the segment of member 5.
	sentTo := func(all []*protocol.Message, kind protocol.MessageType, to protocol.MemberID) *iss.Part {
		for _, m := range all {
			if p := m.Part.(*iss.Part); m.Type == kind && m.To == to && p.Segment == 5 {
				return p
			}
		}
		return nil
	}
	promise := func(from protocol.MemberID, p iss.Part) *protocol.Message {
		return &protocol.Message{Type: iss.MsgPromise, Instance: 1, From: from, To: 1, Term: 1, Part: &p}
	}
	step(0, protocol.Tick{Random: 1})
	asked := sentTo(step(250, protocol.Tick{Random: 2}), iss.MsgPrepare, 2)
	require.NotNil(t, asked, "it suspects a silent leader")
	step(250, protocol.Persisted{Seq: 1})
	all := iss.Part{Segment: 5, Ballot: asked.Ballot, Slot: asked.Slot, Hint: 1 << 20}
	require.Nil(t, sentTo(step(260, promise(2, all)), iss.MsgAccept, 2),
		"nothing is proposed before a quorum has promised completely")
	for now, part := 270, all; now < 500; now += 20 {
		part.Hint, part.More = part.Slot, true
		sent := step(now, promise(3, part))
		hears := sentTo(sent, iss.MsgAccept, 2)
		require.NotNil(t, hears, "%d", now)
		require.Equal(t, asked.Ballot, hears.Ballot)
		require.Nil(t, sentTo(sent, iss.MsgAccept, 4), "it has promised nothing")
		part.Slot = sentTo(sent, iss.MsgPrepare, 3).Slot
	}
}

// A member that leads no segment sends its proposals to an active leader, also if the former one becomes silent in an
// epoch that nothing else ends.
func TestSendsProposalsToAnActiveLeader(t *testing.T) {
	config := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learner: true}}}
	core, err := factory(nil)(protocol.Session{Member: 4}, protocol.Recovered{Base: protocol.Base{Config: config}})
	require.NoError(t, err)
	step := func(now int, in protocol.Input) []*protocol.Message {
		var out protocol.Effects
		core.Step(time.Duration(now)*conformance.Pace, in, &out)
		require.NoError(t, core.Check())
		return out.Send
	}
	beats := func(from, until int, silent protocol.MemberID) {
		for now := from; now < until; now += 10 {
			for id := protocol.MemberID(1); id <= 3; id++ {
				if id != silent {
					step(now, &protocol.Message{Type: iss.MsgBeat, Instance: 1, From: id, To: 4, Term: 1,
						Part: &iss.Part{Serving: true}})
				}
			}
			step(now, protocol.Tick{Random: uint64(now)})
		}
	}
	routed := func(now int) protocol.MemberID {
		id := protocol.ProposalID{Session: protocol.Session{Member: 4}, Seq: uint64(now)}
		e := protocol.Entry{Kind: protocol.EntryBatch, ID: id}
		for _, m := range step(now, protocol.Propose{Entries: []protocol.Entry{e}}) {
			if m.Type == iss.MsgPropose {
				return m.To
			}
		}
		return 0
	}
	beats(0, 50, 0)
	first := routed(50)
	require.NotZero(t, first)
	beats(60, 400, first)
	second := routed(400)
	require.NotZero(t, second)
	require.NotEqual(t, first, second, "it is silent")
	beats(410, 450, 0)
	require.Equal(t, second, routed(450), "a route changes only if its leader is silent")
}
