package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// What was accepted comes into the log before the voters change (docs/internals/lcr.md, L6). Otherwise it would
// rest on a quorum that does not decide any more.

// electorates judges that. The zero value knows of no configuration.
type electorates struct {
	voters []protocol.MemberID // of the last decided configuration, those that go included
	// changes is how often they changed. under is what changes was when a proposal was accepted that is
	// not in the log yet.
	changes int
	under   map[protocol.ProposalID]int
	// took are the proposals that are decided. They may be decided again, and accepted later.
	took map[protocol.ProposalID]bool
}

// accept notes that a member was told that a proposal is accepted.
func (e *electorates) accept(id protocol.ProposalID) {
	if e.under == nil {
		e.under = map[protocol.ProposalID]int{}
	}
	if _, known := e.under[id]; !known && !e.took[id] {
		e.under[id] = e.changes
	}
}

// decide takes in the next decided entry.
func (e *electorates) decide(entry *protocol.Entry) error {
	switch entry.Kind {
	case protocol.EntryConfig:
		c, err := protocol.DecodeConfig(entry.Payload)
		if err != nil {
			return err
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

// forget gives up what is known of a lane of which a part is decided: what is in it is on disks alone.
// Its proposals may come again later, and mean nothing then.
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
		return fmt.Errorf("L6: proposal %d of %s comes at %d, after the voters changed; it was accepted before", id.Seq, id.Session, at)
	}
	return nil
}
