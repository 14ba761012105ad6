package braid

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/braidlog/braid/internal/replica"
)

// RestoreFile makes the directory of a first member of a new cluster, which begins with the state in a file: that of
// [Node.Snapshot], or whatever else the state machine's Restore reads. Call it once for each of the first members, with
// the same file and with the member's Options, before Open: Options.Dir must be new, and Join must not be set. Members
// that were given different files do not connect to each other. Members that join later begin empty and get the state
// of another member. If a state machine keeps its state on disk, it must be empty, and a [Repairable] if other members
// are to join; its Applied must be 0 after Restore has read the file, because the positions of the new log begin at 1.
//
// The new cluster must have an id of its own ([ClusterIDOf] with another token): members of the cluster that wrote the
// file must not be mistaken for its members. Ids and names of members may be those of the old cluster. Positions begin
// again, as in every new cluster. The bodies of commands are not part of a state: one that refers to bodies cannot be
// restored.
//
// RestoreFile does not interpret the file, and takes an empty one too: Restore is called in Open. If that fails with a
// [*MachineError], remove Dir and begin again with another file.
//
// The error is an [*OptionError], a [*DirError], also if Dir has begun, or that of the disk. After an error, or a crash
// before RestoreFile returned, remove Dir and begin again.
//
// Without a backup, [RecoverAlone] begins a new cluster with what a member has that is left.
func RestoreFile(o Options, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, f); err != nil {
		return err
	}
	return o.found("sha256 "+hex.EncodeToString(digest.Sum(nil)), func(w io.Writer) error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := io.Copy(w, f)
		return err
	})
}

// found begins the member's directory with a state.
func (o Options) found(name string, write func(io.Writer) error) error {
	if o.Join {
		return badOption("Join", "a member that joins a running cluster begins empty, and gets the state from there")
	}
	c, err := o.complete()
	if err != nil {
		return err
	}
	if c.choice.Groups() > 0 {
		return badOption("Protocol", "%s has no common state of all keys to begin with", c.choice.Name)
	}
	return replica.Found(c.replica(nil), name, write)
}

// RecoverAlone makes the directory of a new cluster out of one member of a cluster that has lost its majority.
// lost is that member's directory (its Options.Dir), and machine a state machine that keeps its state in memory, empty:
// it is given everything that the log there has, whether this member knows that it was decided or not, as [Salvage]
// does. o are the options of the new cluster's only member, with a new Dir and another cluster id. Open it with them
// and an empty state machine; further members join it. Of several members that are left, [FurthestFirst] says which one
// knows most.
//
// What only the lost members had is lost. The member must not continue in the old cluster: what was not decided may be
// missing there. A state machine that keeps its state on disk, or that refers to bodies ([BodyKeeper]), is refused: for
// these there is Salvage.
//
// The result is the position, in the old log, of the last command that the state includes. The errors are those of
// Salvage and [RestoreFile], and a [*MachineError].
func RecoverAlone(ctx context.Context, lost string, o Options, machine StateMachine) (to Position, err error) {
	_, durable := machine.(DurableStateMachine)
	if _, keeps := machine.(BodyKeeper); durable || keeps || machine == nil {
		return 0, badOption("StateMachine", "it must keep its state in memory, and refer to no bodies")
	}
	if len(o.Members) != 1 {
		return 0, badOption("Members", "are %d: the new cluster begins with one member, and others join it",
			len(o.Members))
	}
	if c, err := o.complete(); err != nil {
		return 0, err
	} else if replica.Begun(c.FS, c.Dir) {
		return 0, &DirError{Dir: c.Dir,
			Detail: "is of a member that has started: a cluster is recovered in a new directory"}
	}
	if _, cluster, err := replica.OwnerOf(OSFS(), lost); err != nil {
		return 0, err
	} else if cluster == o.Cluster {
		return 0, badOption("Cluster", "%x is that of the lost members: the new cluster needs another id", cluster)
	}
	s, err := Salvage(lost, nil, machine)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	view, err := machine.Snapshot()
	if err != nil {
		return 0, &MachineError{Op: "snapshot", Err: err}
	}
	defer view.Close()
	name := fmt.Sprintf("recovered from entry %d of term %d, for cluster %x", s.LastIndex, s.LastTerm, o.Cluster)
	return s.Position, o.found(name, func(w io.Writer) error { return view.WriteTo(ctx, w) })
}
