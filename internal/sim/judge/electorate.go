package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Accepted proposals enter the log before the voters change (docs/internals/lcr.md, L6), or lanes are turned off.
// Otherwise they would depend on a quorum that does not decide any more, or on a lane that is closed.

// electorates judges that. The zero value has no configuration.
type electorates struct {
	voters []protocol.MemberID // of the last decided configuration, with those that leave
	off    bool                // it has turned lanes off
	// changes counts their changes, and how often lanes were turned off. under is the value of changes at the acceptance
	// of each proposal that is not in the log yet.
	changes int
	under   map[protocol.ProposalID]int
	// took are the decided proposals. They may be decided again, and accepted later.
	took map[protocol.ProposalID]bool
}

// accept records that a member learned that a proposal is accepted.
func (e *electorates) accept(id protocol.ProposalID) {
	if e.under == nil {
		e.under = map[protocol.ProposalID]int{}
	}
	if _, known := e.under[id]; !known && !e.took[id] {
		e.under[id] = e.changes
	}
}

// decide processes the next decided entry.
func (e *electorates) decide(entry *protocol.Entry) error {
	switch entry.Kind {
	case protocol.EntryConfig:
		c, err := protocol.DecodeConfig(entry.Payload)
		if err != nil {
			return err
		}
		was := e.off
		text, _ := c.Profile.Values.Get("lanes")
		if e.off = c.Profile.Version > 0 && text != "true"; e.off && !was {
			e.changes++
		}
		voters := append(c.Voters(), c.Outgoing...)
		if slices.Sort(voters); e.voters != nil && !slices.Equal(voters, e.voters) {
			e.changes++
		}
		e.voters = voters
	case protocol.EntryBatch:
		return e.takes(entry.ID, entry.Index)
	case protocol.EntryGroup:
		if !entry.Applicable() {
			e.forget(entry)
			return nil
		}
		batches, err := entry.Batches(nil)
		for i := range batches {
			if err == nil {
				err = e.takes(batches[i].ID, entry.Index)
			}
		}
		return err
	}
	return nil
}

// forget drops the state of a lane that is partly decided: its content is on disks alone. Its proposals may arrive
// again later, without a meaning.
func (e *electorates) forget(group *protocol.Entry) {
	r, _ := group.Range()
	maps.DeleteFunc(e.under, func(id protocol.ProposalID, _ int) bool { return id.Session == r.Lane })
}

func (e *electorates) takes(id protocol.ProposalID, at protocol.Index) error {
	under, accepted := e.under[id]
	if e.took == nil {
		e.took = map[protocol.ProposalID]bool{}
	}
	e.took[id] = true
	if delete(e.under, id); accepted && under < e.changes {
		return fmt.Errorf("L6: proposal %d of %s comes at %d, after the voters changed or lanes were turned off; it was "+
			"accepted before", id.Seq, id.Session, at)
	}
	return nil
}
