package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// Operation is what an operator asks of a cluster. It is asked of any member, and the leader of
// the first instance carries it out: see Request and Execution.
type Operation struct {
	Kind      OperationKind
	Changes   []protocol.Change // ChangeMembers: made jointly; Tune: the new profile
	To        protocol.MemberID // TransferLeader: a voter; 0: the most advanced one
	Instances int               // Reshape: from how many the log is to be merged
	Seal      protocol.Seal     // Switch: what follows; the leader fills in Members
}

// OperationKind says what an operator asks for. It is the first byte of a request between members.
type OperationKind byte

// The kinds of operations.
const (
	ChangeMembers  OperationKind = 'c'
	TransferLeader OperationKind = 't'
	Reshape        OperationKind = 'r'
	Tune           OperationKind = 'u'
	Switch         OperationKind = 'w'
)

func (k OperationKind) String() string {
	switch k {
	case ChangeMembers:
		return "membership change"
	case TransferLeader:
		return "leadership transfer"
	case Reshape:
		return "reshape"
	case Tune:
		return "tune"
	case Switch:
		return "switch"
	}
	return fmt.Sprintf("operation %q", byte(k))
}

// configures reports whether an operation changes the configuration.
func (k OperationKind) configures() bool { return k == ChangeMembers || k == Tune }

// repeats reports whether an operation may be asked for again if its answer was lost. A new profile and a seal have a
// version, and of several to one version at most one counts.
func (k OperationKind) repeats() bool { return k == Tune || k == Switch }

// Encode is the operation as a request to another member.
func (op *Operation) Encode() ([]byte, error) {
	arg, err := json.Marshal(op.arg())
	return append([]byte{byte(op.Kind)}, arg...), err
}

// DecodeOperation is the opposite of Encode. ok is false if the request is for something else.
func DecodeOperation(request []byte) (op Operation, ok bool, err error) {
	op.Kind = OperationKind(request[0])
	arg := op.arg()
	if arg == nil {
		return op, false, nil
	}
	return op, true, json.Unmarshal(request[1:], arg)
}

func (op *Operation) arg() any {
	switch op.Kind {
	case ChangeMembers, Tune:
		return &op.Changes
	case TransferLeader:
		return &op.To
	case Reshape:
		return &op.Instances
	case Switch:
		return &op.Seal
	}
	return nil
}

// refuse is the error of an operation of which nothing happened.
func (op *Operation) refuse(reason protocol.Reason, leader protocol.MemberID) error {
	return &member.RefusedError{What: op.Kind.String(), Reason: reason, Leader: leader}
}

// Unanswered is the error of an operation whose asker waits no longer, because of err.
func (op *Operation) Unanswered(err error) error {
	if op.Kind.configures() || op.Kind == Switch {
		return fmt.Errorf("%w: %w", member.ErrMaybeCommitted, err)
	}
	return err
}

// removes reports whether the operation removes a member from the cluster.
func (op *Operation) removes(id protocol.MemberID) bool {
	return slices.ContainsFunc(op.Changes,
		func(c protocol.Change) bool { return c.Kind == protocol.RemoveMember && c.Member.ID == id })
}

// removesUnknown reports whether the operation removes a member that a configuration neither has nor had.
func (op *Operation) removesUnknown(c *protocol.Config) bool {
	return slices.ContainsFunc(op.Changes, func(ch protocol.Change) bool {
		return ch.Kind == protocol.RemoveMember && c.Find(ch.Member.ID) == nil &&
			!slices.Contains(c.Removed, ch.Member.ID)
	})
}

// adds reports whether the operation adds a member to a configuration.
func (op *Operation) adds(c *protocol.Config) bool {
	return slices.ContainsFunc(op.Changes, func(ch protocol.Change) bool {
		return ch.Kind != protocol.RemoveMember && ch.Kind != protocol.Tune && c.Find(ch.Member.ID) == nil
	})
}

// onlyRemoves reports whether the operation changes nothing but that members leave.
func (op *Operation) onlyRemoves() bool {
	return !slices.ContainsFunc(op.Changes, func(c protocol.Change) bool { return c.Kind != protocol.RemoveMember })
}

// refusal is the answer to a request that was refused.
type refusal struct {
	Reason protocol.Reason   `json:"reason,omitempty"`
	Leader protocol.MemberID `json:"leader,omitempty"`
}

// EncodeAnswer is the answer to a request. Only refusals travel as such; other errors stay errors.
func EncodeAnswer(err error) ([]byte, error) {
	ref := refusal{}
	if refused := (*member.RefusedError)(nil); errors.As(err, &refused) {
		ref = refusal{refused.Reason, refused.Leader}
	} else if err != nil {
		return nil, err
	}
	return json.Marshal(ref)
}

// DecodeAnswer is the opposite of EncodeAnswer. what says what was asked for.
func DecodeAnswer(what string, answer []byte) error {
	var ref refusal
	if err := json.Unmarshal(answer, &ref); err != nil || ref.Reason == protocol.ReasonNone {
		return err
	}
	return &member.RefusedError{What: what, Reason: ref.Reason, Leader: ref.Leader}
}

// passing reports whether the reason for a refusal goes away after a short wait.
func passing(r protocol.Reason) bool {
	switch r {
	case protocol.ReasonNoLeader, protocol.ReasonNotLeader, protocol.ReasonChangePending, protocol.ReasonTransferring,
		protocol.ReasonRestriping, protocol.ReasonSealing:
		return true
	}
	return false
}
