package raft

import "github.com/braidlog/braid/protocol"

// rs is RS-Raft's placement (docs/internals/craft.md, 2.7): every body is coded with the same k, and quorums
// are larger for that. Whole copies are never sent. Without a write quorum nothing is committed;
// any read quorum can make everything whole.
type rs struct{ code }

func (c *rs) k() uint8 {
	if c.r.members.Config.Slots == 0 {
		return 1
	}
	return uint8(c.most)
}

func (c *rs) kOf(func(protocol.MemberID) bool) uint8 { return c.k() }

func (c *rs) tick() {}

func (c *rs) uncode() {}

func (c *rs) recode() {}
