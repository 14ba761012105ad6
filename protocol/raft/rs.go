package raft

// rs is RS-Raft's placement (docs/craft.md, 2.7): every body is coded with the same k, and larger
// quorums make up for it. There is no way back to whole copies: without a write quorum
// nothing is committed, and any read quorum can make everything whole.
type rs struct{ code }

func (c *rs) k() uint8 {
	if c.r.conf.Slots == 0 {
		return 1
	}
	return uint8(c.most)
}

func (c *rs) tick() {}

func (c *rs) uncode() {}

func (c *rs) recode() {}
