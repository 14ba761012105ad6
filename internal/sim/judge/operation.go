package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/protocol"
)

// Done judges an operation that a member reported as done. It must have been done at some moment since the request.
func (c *Court) Done(by protocol.MemberID, op *cluster.Operation, began time.Duration) error {
	switch op.Kind {
	case cluster.ChangeMembers:
		leaves := slices.ContainsFunc(op.Changes, func(ch protocol.Change) bool {
			return ch.Kind == protocol.RemoveMember && (ch.Member.ID == by || c.First.Led[ch.Member.ID])
		})
		for _, j := range c.All {
			if !j.Ended && !j.madeSince(op.Changes, began, !leaves) {
				return fmt.Errorf("answers that %s is made; instance %d has not decided it", DescribeChanges(op.Changes), j.ID)
			}
			if leaves { // perhaps it is the leader, which then does not learn the decisions of the other instances
				break
			}
		}
	case cluster.Tune:
		return c.Profile(op.Changes[0].Profile, 0)
	case cluster.Switch:
		return c.Profile(&op.Seal.Profile, 0)
	case cluster.TransferLeader:
		if op.To != 0 && !c.First.Led[op.To] && !c.First.Core.Judged.ManyLead && !c.First.Core.Judged.ByKey {
			return fmt.Errorf("answers that %s leads, which was never elected", op.To)
		}
	case cluster.Reshape:
		for i, s := range c.shapes {
			if s.instances == op.Instances && (i == len(c.shapes)-1 || c.shapes[i+1].at >= began) {
				return nil
			}
		}
		return fmt.Errorf("answers that there are %d instances; there were %v", op.Instances, c.shapes)
	}
	return nil
}

// madeSince reports whether a decided membership agreed with the changes at some moment since then. voters: new
// voters must be voters already. The leader may not know a learner that the asked member knows, and may let it join
// first. A member that leaves does not wait for the rest.
func (j *Instance) madeSince(changes []protocol.Change, since time.Duration, voters bool) bool {
	for i := range j.Configs {
		if (i == len(j.Configs)-1 || j.Configs[i+1].At >= since) && asWanted(&j.Configs[i].Config, changes, voters) {
			return true
		}
	}
	return false
}

func asWanted(c *protocol.Config, changes []protocol.Change, voters bool) bool {
	for _, ch := range changes {
		x := c.Find(ch.Member.ID)
		if ch.Kind == protocol.RemoveMember != (x == nil) || ch.Kind == protocol.AddVoter && voters &&
			!c.Voter(ch.Member.ID) {
			return false
		}
	}
	return len(c.Outgoing) == 0
}

// DescribeChanges formats membership changes for a trace.
func DescribeChanges(changes []protocol.Change) string {
	names := [...]string{
		protocol.AddVoter: "voter", protocol.AddLearner: "learner", protocol.RemoveMember: "remove",
		protocol.UpdateMember: "update", protocol.AddJoining: "joining",
	}
	text := ""
	for _, c := range changes {
		text += names[c.Kind] + " " + c.Member.ID.String() + " "
	}
	return text
}
