package cluster

import (
	"fmt"

	"github.com/braidlog/braid/internal/member"
)

// Birth is the state with which a cluster began, before its first entry: all members must have begun with the same
// one. It is decided when a cluster is founded, and told to members that join.
type Birth struct {
	// State names the state that was restored; "": the cluster began empty.
	State string
	// Unknown: the member joins a cluster, and was not told yet.
	Unknown bool
}

// Agrees reports whether two members may have a link as far as the beginning of their clusters goes: it is the same
// state, or one of them was not told yet.
func (b Birth) Agrees(o Birth) bool { return b.Unknown || o.Unknown || b == o }

// Born is a state machine that may begin with a state that no command led to. It must be [member.Mendable], because a
// member that joins later gets such a state from the others only as a whole.
type Born interface {
	// Birth names the state with which it began: the same name for the same state; "": an empty one.
	Birth() string
}

// BirthOf is with which state a state machine began; "": an empty one. The error is a [*member.MachineError].
func BirthOf(sm member.StateMachine) (string, error) {
	b, ok := sm.(Born)
	if !ok || b.Birth() == "" {
		return "", nil
	}
	if _, ok := sm.(member.Mendable); !ok {
		return "", &member.MachineError{Op: "begin",
			Err: fmt.Errorf("it begins with a state, %s, that members which join later cannot get", b.Birth())}
	}
	return b.Birth(), nil
}

// BirthError says that two members tell a member that joins of two clusters, which began with different states. There
// is no link with the second one.
type BirthError struct{ Known, Told string }

func (e *BirthError) Error() string {
	return fmt.Sprintf("braid: the cluster began with state %q, and with %q by another member", e.Known, e.Told)
}

// AdoptBirth makes a member that joins ready for a cluster which began with a state: its own empty one is given up, and
// another member's takes its place. Until then nothing is applied.
func AdoptBirth(sm member.StateMachine, state string) error {
	if state == "" {
		return nil
	}
	r, ok := sm.(member.Mendable)
	if !ok {
		return &member.MachineError{Op: "begin",
			Err: fmt.Errorf("the cluster began with the state %s, and this member with none", state)}
	}
	r.Condemn(fmt.Errorf("the cluster began with the state %s, and this member with none: it gets that of another member",
		state))
	return nil
}
