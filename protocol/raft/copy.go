package raft

import "github.com/braidlog/braid/protocol"

// copies is Raft's placement: whole payloads for everybody, safe with a majority.
type copies struct{ r *Raft }

func (c *copies) frame(p *progress) []protocol.Entry {
	return c.r.log.frame(p.next, c.r.cfg.MaxFrameBytes, c.r.cfg.MaxFrameEntries)
}

func (c *copies) acked(*progress, *protocol.Message) {}

// stored counts this member like any other, and only with what its disk holds: the
// followers may commit an entry before the leader's own disk is done.
func (c *copies) stored() protocol.Index {
	r := c.r
	return protocol.Index(r.deciders().Agreed(func(id protocol.MemberID) uint64 {
		if id == r.cfg.Self {
			return uint64(r.disk.durable)
		}
		if p := r.peer(id); p != nil {
			return uint64(p.match)
		}
		return 0
	}))
}

func (c *copies) prepare() bool { return true }

func (c *copies) reset() {}
