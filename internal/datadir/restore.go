package datadir

import (
	"errors"
	"fmt"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/protocol"
)

// Restore brings the state machine and its meta to the newest snapshot, at the start. skip is the position up to
// which the state of a state machine on disk has already applied. Restore skips a snapshot whose header is damaged,
// or whose state is damaged and needed. The snapshot before is enough, because the log goes back to it. It refuses a
// snapshot with which this program's cores cannot continue (a [*protocol.SectionError]), or whose order does not fit
// the state machine (a [*intake.GroupError]), before it changes the state machine.
func Restore(
	s *Snapshots, sm member.StateMachine, derive member.Derive,
) (meta member.Meta, skip protocol.Position, err error) {
	d, durable := sm.(member.DurableStateMachine)
	if durable {
		skip = d.Applied()
	}
	h, ok, err := s.choose(durable && member.Damaged(sm) == nil, skip)
	if err != nil {
		return meta, 0, err
	}
	if err := h.CheckSections(derive); err != nil {
		return meta, 0, fmt.Errorf("data directory %s: %w", s.dir, err)
	}
	if err := apply.CheckMachine(sm, &h.Cursor); ok && err != nil {
		return meta, 0, fmt.Errorf("data directory %s: %w", s.dir, err)
	}
	switch {
	case !ok && skip > 0:
		return meta, 0, &member.DirError{Dir: s.dir,
			Detail: fmt.Sprintf("the state machine is at position %d, but there is no snapshot", skip)}
	case !ok, durable && skip >= h.Command && member.Damaged(sm) == nil && !(skip == 0 && h.founds()):
		return h.Meta, skip, nil
	case !h.HasState && (h.Command > 0 || member.Damaged(sm) != nil) && repairable(sm, skip, &h):
		return h.Meta, h.Command, nil
	case !h.HasState && h.Command > 0:
		return meta, 0, &member.DirError{Dir: s.dir, Detail: fmt.Sprintf(
			"the log begins after command %d, but the state machine is only at %d", h.Command, skip)}
	case !h.HasState:
		return h.Meta, skip, nil
	}
	f, err := s.Open(h.Cursor.Position)
	if err != nil {
		return meta, 0, err
	}
	defer f.Close()
	if err := member.Restore(sm, f); err != nil {
		return meta, 0, err
	}
	if durable && h.founds() && d.Applied() > 0 {
		return meta, 0, &member.MachineError{Op: "restore",
			Err: fmt.Errorf("the state with which the cluster begins says that it is at position %d: "+
				"the new log would not be applied up to there", d.Applied())}
	}
	return h.Meta, h.Command, nil
}

// founds reports whether the snapshot has the state with which the cluster began. A state machine on disk to which no
// command was applied has that state too.
func (h *SnapshotHeader) founds() bool { return h.HasState && h.Cursor.Position == 0 }

// repairable reports whether another member's state can replace a state that ends before the log
// begins. If so, it condemns the state, unless that is damaged already.
func repairable(sm member.StateMachine, skip protocol.Position, h *SnapshotHeader) bool {
	r, ok := sm.(member.Repairable)
	if ok && r.Damaged() == nil {
		r.Condemn(fmt.Errorf("the log begins after command %d, but the state machine is only at %d", h.Command, skip))
	}
	return ok
}

// choose finds the newest snapshot that can be used, and renames newer ones that are damaged. ok is
// false if there is no snapshot. It is an error if all are damaged.
func (s *Snapshots) choose(durable bool, skip protocol.Position) (h SnapshotHeader, ok bool, err error) {
	all, err := s.Positions()
	if err != nil {
		return h, false, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		h, err := s.usable(all[i], durable, skip)
		if err == nil {
			return h, true, s.setAside(all[i+1:])
		}
		if !member.IsDamage(err) { // the disk failed to read it
			return h, false, err
		}
		s.Damaged = append(s.Damaged, err)
		if i == 0 {
			return h, false, errors.Join(s.Damaged...)
		}
	}
	return h, false, nil
}

// usable reads a snapshot's header, and verifies its state if the state is needed.
func (s *Snapshots) usable(p protocol.Position, durable bool, skip protocol.Position) (SnapshotHeader, error) {
	f, err := s.Open(p)
	if err != nil {
		return SnapshotHeader{}, err
	}
	h := f.Header
	if err := f.Close(); err != nil || !h.HasState || durable && skip >= h.Command {
		return h, err
	}
	return h, s.Whole(p)
}

func (s *Snapshots) setAside(damaged []protocol.Position) error {
	for _, p := range damaged {
		if err := s.fs.Rename(s.path(p), s.path(p)+badSuffix); err != nil {
			return err
		}
	}
	return nil
}
