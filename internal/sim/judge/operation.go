package judge

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/protocol"
)

// Asked says which member was asked for an operation, when, and which instance was the first one there.
type Asked struct {
	By    protocol.MemberID
	At    time.Duration
	First protocol.InstanceID
}

// Done judges an operation that a member reported as done, see also [ClaimsUnknown]. It must have been done at some
// moment since the request.
func (c *Court) Done(asked Asked, op *cluster.Operation) error {
	switch op.Kind {
	case cluster.ChangeMembers:
		return c.made(asked, op.Changes)
	case cluster.Tune:
		return c.Profile(op.Changes[0].Profile, 0)
	case cluster.Switch:
		return c.Profile(&op.Seal.Profile, 0)
	case cluster.TransferLeader:
		if op.To != 0 && !c.led(op.To, asked.First, true) {
			return fmt.Errorf("answers that %s leads, which was never elected", op.To)
		}
	case cluster.Reshape:
		for i, s := range c.shapes {
			if s.instances == op.Instances && (i == len(c.shapes)-1 || c.shapes[i+1].at >= asked.At) {
				return nil
			}
		}
		return fmt.Errorf("answers that there are %d instances; there were %v", op.Instances, c.shapes)
	}
	return nil
}

// ClaimsUnknown reports whether a member refused to remove another one because there is none with that id. That claims
// the same as an answer that it was removed: at some moment since the request there was no such member.
func ClaimsUnknown(op *cluster.Operation, err error) bool {
	var refused *member.RefusedError
	return len(op.Changes) == 1 && op.Changes[0].Kind == protocol.RemoveMember &&
		errors.As(err, &refused) && refused.Reason == protocol.ReasonUnknownMember
}

// made judges a change of members that is reported as made.
func (c *Court) made(asked Asked, changes []protocol.Change) error {
	judges := c.All
	leaves := slices.ContainsFunc(changes, func(ch protocol.Change) bool {
		return ch.Kind == protocol.RemoveMember && (ch.Member.ID == asked.By || c.led(ch.Member.ID, asked.First, false))
	})
	if leaves { // perhaps it is the leader, which then does not learn the decisions of the other instances
		judges = []*Instance{c.First}
	}
	for _, j := range judges {
		if !j.Ended && !j.madeSince(changes, asked.At, !leaves) {
			return fmt.Errorf("answers that %s is made; instance %d has not decided it", DescribeChanges(changes), j.ID)
		}
	}
	return nil
}

// led reports whether a member led the first instance: the one behind the last seal, or one before that, back to a
// given one. The court knows of a seal as soon as one member has decided it. The others take part in the instance
// before it until they learn so, and a transfer is done when it shows on them: they name the leader whom they follow
// there. If the member that decided the seal has lost that again, they may even elect another one there, who leads
// all that take part. hinted: where several members lead, or none, each of them counts.
func (c *Court) led(id protocol.MemberID, since protocol.InstanceID, hinted bool) bool {
	return slices.ContainsFunc(c.firsts, func(j *Instance) bool {
		judged := &j.Core.Judged
		return j.ID >= since && (j.Led[id] || hinted && (judged.ManyLead || judged.ByKey))
	})
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
