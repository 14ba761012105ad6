package code

import (
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/raftlog"
	"github.com/braidlog/braid/protocol"
)

// Bodies is the owner's last report about the bodies of committed entries (protocol.Bodies).
type Bodies struct {
	// Missing: some are not held here in any form, as far as is known.
	Missing bool
	// maxK is the largest k among those alive.
	maxK uint8
	// partial is the largest k among those that the disk does not hold whole, as of the
	// configuration restripes.
	partial   uint8
	restripes uint32
	// said is the last report of the owner. It accounts for the entries up to at. spoken: the owner
	// has said something.
	said   protocol.Bodies
	at     protocol.Index
	spoken bool
}

// Report takes in what the owner says. It accounts only for entries that the owner was given. The
// log knows more about later entries, especially those that a member finds in it at its start.
func (b *Bodies) Report(in protocol.Bodies, given protocol.Index, log *raftlog.Log) {
	b.said, b.at, b.spoken = in, given, true
	b.Weigh(log)
}

// Weigh computes the state of this member's bodies from what the owner said and from the log
// after that.
func (b *Bodies) Weigh(log *raftlog.Log) {
	if !b.spoken {
		return
	}
	b.Missing, b.maxK, b.partial, b.restripes = b.said.Missing > 0, b.said.MaxK, b.said.Partial, b.said.Restripes
	for i := max(b.at, log.Base) + 1; i <= log.Last; {
		run := log.Run(i, log.Last+1)
		for j := range run {
			e := &run[j]
			b.Missing = b.Missing || e.BodySize > 0 && e.Form == protocol.FormNone
			if e.Coded() && e.Form != protocol.FormWhole {
				b.partial = max(b.partial, e.K)
			}
		}
		i += protocol.Index(len(run))
	}
}

// Install notes that a snapshot took the place of the log: bodies may be missing until the owner has looked.
func (b *Bodies) Install() { b.Missing, b.restripes, b.spoken = true, 0, false }

// Tell tells the leader the state of this member's bodies, in an answer that leaves when the disk is done.
func (b *Bodies) Tell(m message.Message) {
	m.Lacking, m.Partial, m.Restripes = b.Missing, b.partial, b.restripes
}

// TellNow is Bodies.Tell in an answer that does not wait for the disk.
func (v *View) TellNow(m message.Message) {
	v.Bodies.Tell(m)
	m.Restripes = v.obeyed()
}

// MaxK is the largest k of a body that may be alive: in the log, or as the owner said.
func (v *View) MaxK() uint8 { return max(v.Bodies.maxK, v.Log.MaxK()) }
