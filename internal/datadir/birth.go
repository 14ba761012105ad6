package datadir

import (
	"cmp"
	"io"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
)

// The state with which the member's cluster began, in an identity, unless it is a state's name.
const (
	birthEmpty   = "empty"
	birthUnknown = "unknown" // the member joins a cluster, and does not know yet
)

// resolveBirth determines in the first incarnation with which state the cluster began. A directory of an earlier
// version does not record it; there it is the state machine's, if that was restored, and otherwise empty.
func (id *identity) resolveBirth(dir string, who *Owner) error {
	switch {
	case id.Birth != "":
	case id.Incarnation == 0 && who.Join && who.Birth != "":
		return &member.DirError{Dir: dir,
			Detail: "is to join a running cluster, and its state was restored from a snapshot: " +
				"a member that joins begins empty and gets the state of its cluster"}
	case id.Incarnation == 0 && who.Join:
		id.Birth = birthUnknown
	default:
		id.Birth = cmp.Or(who.Birth, birthEmpty)
	}
	return nil
}

// birth is the birth to send to others.
func (id *identity) birth() cluster.Birth {
	switch id.Birth {
	case birthUnknown:
		return cluster.Birth{Unknown: true}
	case birthEmpty:
		return cluster.Birth{}
	}
	return cluster.Birth{State: id.Birth}
}

// recordBirth makes durable with which state the cluster began that the member joined.
func recordBirth(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID, state string) error {
	id, err := readIdentity(fs, dir, cluster, self)
	if err != nil || id.Birth != birthUnknown {
		return err
	}
	id.Birth = cmp.Or(state, birthEmpty)
	return writeIdentity(fs, dir, id)
}

// State is a state with which a cluster begins. All its first members begin with the same one.
type State struct {
	Name  string // the same for the same state, and not empty
	Write func(io.Writer) error
}

// withState gives up the state of a state machine in memory which is empty although the cluster began with a state: no
// entry of the log leads there. Another member's takes its place. A state machine on disk knows that itself.
func (o *Opened) withState(sm member.StateMachine) error {
	m, ok := sm.(member.Mendable)
	if _, durable := sm.(member.DurableStateMachine); !ok || durable || o.Birth.State == "" || o.Meta.Cursor.Position > 0 {
		return nil
	}
	f, err := o.Snapshots.Open(0)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil || f.Header.HasState {
		return err
	}
	return cluster.AdoptBirth(m, o.Birth.State)
}
