package slotpaxos

import (
	"encoding/binary"
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// Chain is a digest of all that was decided from the first slot on, except for no-ops. A leader sends its own in
// heartbeats, so members with different logs detect that. If a log begins after a snapshot, the snapshot has the
// chain at that place.
type Chain struct{ sum uint64 }

// The chain's section. Its data is the digest, little-endian.
const (
	ChainSection = "chain"
	chainVersion = 1
)

// Derive returns the chain of an empty log. It does not depend on the members.
func Derive(protocol.Config) protocol.Derived { return &Chain{} }

// Apply implements protocol.Derived, as the methods below do.
func (c *Chain) Apply(e *protocol.Entry) {
	if e.Kind == protocol.EntryNoop {
		return
	}
	head := e.Head()
	if head == nil { // it was dropped; the same place gives the same bytes
		light := *e
		head = make([]byte, protocol.HeadSize)
		light.Seal(e.Index, e.Term, head)
	}
	for _, b := range head {
		c.sum = (c.sum ^ uint64(b)) * 0x100000001b3 // FNV-1a, which continues from what came before
	}
}

// Section returns the digest.
func (c *Chain) Section() protocol.Section {
	return protocol.Section{Name: ChainSection, Version: chainVersion, Data: binary.LittleEndian.AppendUint64(nil, c.sum)}
}

// Restore sets the digest to that of a section.
func (c *Chain) Restore(s protocol.Section) error {
	if err := s.Expect(ChainSection, chainVersion); err != nil {
		return err
	}
	if len(s.Data) != 8 {
		return &protocol.CorruptError{What: "chain", Detail: fmt.Sprintf("%d bytes, want 8", len(s.Data))}
	}
	c.sum = binary.LittleEndian.Uint64(s.Data)
	return nil
}

// compare reports whether this log equals that of a member that sent its chain. It compares logs of equal length,
// which is the usual case, because slots are decided one after the other. If they differ, this member stops.
func (s *Paxos) compare(m *protocol.Message, p Part) bool {
	if m.Commit != s.log.Last() || p.Chain == s.log.chain.sum {
		return true
	}
	s.diverged(&protocol.DivergedError{Instance: s.cfg.Instance, From: m.From, Index: m.Commit})
	return false
}

// diverged reports whether another member has decided another value than this one. Then this member stops.
func (s *Paxos) diverged(err *protocol.DivergedError) bool {
	if err != nil {
		s.out.Diverged, s.stopped = err, true
	}
	return err != nil
}
