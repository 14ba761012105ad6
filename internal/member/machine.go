package member

import (
	"context"
	"io"

	"github.com/braidlog/braid/protocol"
)

// Command is one command on its way into a state machine.
type Command struct {
	// Position is the command's place in the global log: strictly increasing, equal on
	// every member. Positions may be left out (entries of the log itself, duplicates).
	Position protocol.Position
	// Data is what was proposed. It is valid until Apply returns.
	Data []byte
	// Body names the large part of the command, which Apply does not need. nil: there is none.
	Body *protocol.BodyRef
	// Result is set by Apply and handed to whoever proposed the command on this member.
	Result any
}

// StateMachine is what the log drives. Its calls come from one goroutine. Only Snapshot.WriteTo runs at the same time
// as Apply.
type StateMachine interface {
	// Apply applies commands in order and sets their results. It must depend on nothing but the
	// state and the commands. It must not fail because of a command: such an error is a result. A
	// state machine that cannot continue (its disk failed) returns an error, which stops the member.
	// A panic ends the process. It must not wait for the log: a Propose, a read or a membership change
	// waits for what Apply has not applied yet. Such calls end with [ErrWithinApply], if they come from the
	// goroutine that calls Apply; from another one for which Apply waits they end with their context only.
	// ProposeAsync may be called.
	Apply(commands []Command) error
	// Snapshot returns a view of the state as it is now. It should be quick: the view is
	// written later, while Apply continues.
	Snapshot() (Snapshot, error)
	// Restore replaces the state by one that a Snapshot wrote, here or on another member. The
	// bytes were verified before. If they have been damaged since, r ends with an error instead of
	// io.EOF. So a state that is kept on disk should be made valid only after io.EOF.
	Restore(r io.Reader) error
}

// Snapshot is a view of a state machine: the state as it was when it was taken.
type Snapshot interface {
	// WriteTo writes the view. It stops early with ctx's error when ctx is done.
	WriteTo(ctx context.Context, w io.Writer) error
	// Close frees the view.
	Close() error
}

// DurableStateMachine is a state machine that keeps its state on disk by itself. After a
// restart the log continues after Applied instead of from a snapshot.
type DurableStateMachine interface {
	StateMachine
	// Applied returns the position of the last command that the state includes. It is asked for
	// when the member starts. Commands up to it are not applied again. A state that is further than
	// the log is refused with a [DirError], or, where the log of other members may have what is
	// missing in this one's, stops the member with a [apply.StateAheadError] as soon as it shows that they do not.
	Applied() protocol.Position
	// Sync makes everything applied so far durable; the log may then be cut there.
	Sync() error
}

// Mendable is a state machine that can be without a state. Then Apply and Snapshot return errors, until Restore was
// given the state of another member. Damaged and Condemn may be called concurrently.
type Mendable interface {
	StateMachine
	// Damaged returns why there is no state that can be used, nil if there is one.
	Damaged() error
	// Condemn says that the state cannot be used.
	Condemn(cause error)
}

// Repairable is a durable state machine that can find out that its state is damaged. Then Sync returns an error too,
// and Applied has no meaning, until Restore was given another state.
type Repairable interface {
	DurableStateMachine
	Mendable
}

// Damaged returns why a state machine's state cannot be used.
func Damaged(sm StateMachine) error {
	if m, ok := sm.(Mendable); ok {
		return m.Damaged()
	}
	return nil
}

// Restore gives a state machine another state, and reads what it leaves unread: that some of the state is damaged may
// show at its end only. The error is a [*MachineError], or that of reading.
func Restore(sm StateMachine, state io.Reader) error {
	if err := sm.Restore(state); err != nil {
		return &MachineError{Op: "restore", Err: err}
	}
	_, err := io.Copy(io.Discard, state)
	return err
}

// Versioned is a [DurableStateMachine] whose commands have versions. There is no link between a member that applied a
// command of a version and a member that does not know the version: its state would differ.
type Versioned interface {
	// StateVersion returns the newest version among the commands that were applied, and the newest that this program
	// knows: 0 to 3. The first may grow and never decreases; it includes the version of a command before the command is
	// answered. StateVersion is called concurrently with all other methods.
	StateVersion() (needed, known uint8)
}
