package code

import "github.com/braidlog/braid/protocol"

// rs is RS-Raft's placement (docs/internals/craft.md, 2.7): every body is coded with the same k, and quorums
// are larger for that. Whole copies are never sent. Without a write quorum nothing is committed;
// any read quorum can make everything whole.
type rs struct{ code }

func (c *rs) K(v *View) uint8 {
	if v.Members.Config.Slots == 0 {
		return 1
	}
	return uint8(v.most())
}

func (c *rs) KOf(v *View, _ func(protocol.MemberID) bool) uint8 { return c.K(v) }

func (c *rs) Tick(*View) *protocol.Config { return nil }

func (c *rs) Uncode(*View) {}

func (c *rs) Recode() {}
