package epaxos_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/epaxos"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
)

// slow is a cluster of three whose disks complete no write on their own.
func slow(t *testing.T, m protocol.Mutant) *conformance.Net {
	net := conformance.NewNet(t, 3, 1, epaxos.Codec, factory(func(c *protocol.Settings) { c.Mutant = m }))
	for _, n := range net.Nodes {
		net.Tick(n.ID, conformance.Pace)
	}
	net.Settle()
	net.Lag = true
	return net
}

// sent is the number of messages of a type in flight.
func sent(net *conformance.Net, kind protocol.MessageType) (n int) {
	for _, p := range net.Queue {
		if p.Message.Type == kind {
			n++
		}
	}
	return n
}

// deliver delivers all messages of a type.
func deliver(net *conformance.Net, kind protocol.MessageType) {
	for i := 0; i < len(net.Queue); {
		if net.Queue[i].Message.Type == kind {
			net.Deliver(i)
		} else {
			i++
		}
	}
}

// The contents of a message are durable before it is sent: the number of a command, an answer, a decision. A command
// is handed over when its place is durable.
func TestNothingIsSaidBeforeItIsDurable(t *testing.T) {
	for _, c := range []struct {
		early protocol.Mutant
		said  protocol.MessageType
		steps int // of those below, after which the message must not be sent
	}{
		{epaxos.MutantReuse, epaxos.MsgPreAccept, 1}, {epaxos.MutantAnswerEarly, epaxos.MsgPreAccepted, 2},
		{epaxos.MutantTellEarly, epaxos.MsgDecided, 3},
	} {
		for _, m := range []protocol.Mutant{"", c.early} {
			net := slow(t, m)
			net.Propose(1, 10)
			if c.steps > 1 { // the others have the command, and their disks do not
				net.Sync(1)
				deliver(net, epaxos.MsgPreAccept)
			}
			if c.steps > 2 { // a fast quorum has answered
				net.Sync(2)
				deliver(net, epaxos.MsgPreAccepted)
			}
			if m == "" {
				require.Zero(t, sent(net, c.said), "type %d", c.said)
			} else {
				require.Positive(t, sent(net, c.said), "%s makes no difference", m)
			}
		}
	}
}
