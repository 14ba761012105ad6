package apply

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// Groups is the state machine of a keyed order: one of its own for each group. Groups share no keys, so the state of
// one follows from that group's log alone. A member without the log of one group takes over another member's state of
// that group, and keeps its own of the others.
type Groups struct {
	ids      []protocol.InstanceID // ascending
	machines []member.StateMachine // of the same place in ids
}

// NewGroups makes a state machine for each group. Their state may not be on disk, and they have no bodies:
// a snapshot holds all of it.
func NewGroups(ids []protocol.InstanceID, machine func(protocol.InstanceID) member.StateMachine) (*Groups, error) {
	g := &Groups{ids: ids}
	for _, id := range ids {
		sm := machine(id)
		if _, durable := sm.(member.DurableStateMachine); durable {
			return nil, &intake.GroupError{Detail: "a state machine that keeps its state on disk has one order"}
		}
		g.machines = append(g.machines, sm)
	}
	return g, nil
}

// CheckMachine is an error if a state machine does not fit the order at a cursor: in a keyed order it is a
// [Groups] of its instances.
func CheckMachine(sm member.StateMachine, at *order.Cursor) error {
	g, keyed := sm.(*Groups)
	if keyed != at.Keyed || keyed && !slices.Equal(g.ids, at.Instances()) {
		return &intake.GroupError{Detail: fmt.Sprintf("the state machine is not of the instances %v", at.Instances())}
	}
	return nil
}

// of is a group's state machine.
func (g *Groups) of(id protocol.InstanceID) member.StateMachine {
	return g.machines[slices.Index(g.ids, id)]
}

// Apply implements [member.StateMachine]. No one calls it: each command is of a group.
func (g *Groups) Apply([]member.Command) error {
	return errors.New("braid: commands of no group")
}

// groupsView is a view of all groups.
type groupsView struct {
	ids   []protocol.InstanceID
	views []member.Snapshot
}

// Snapshot implements [member.StateMachine].
func (g *Groups) Snapshot() (member.Snapshot, error) {
	v := &groupsView{ids: g.ids}
	for _, sm := range g.machines {
		s, err := sm.Snapshot()
		if err != nil {
			return nil, errors.Join(err, v.Close())
		}
		v.views = append(v.views, s)
	}
	return v, nil
}

// WriteTo implements [member.Snapshot]. Each group's state is its id, then pieces that begin with their length,
// the last of which is empty.
func (v *groupsView) WriteTo(ctx context.Context, w io.Writer) error {
	for i, s := range v.views {
		if err := writeUint32(w, uint32(v.ids[i])); err != nil {
			return err
		}
		p := &pieces{w: w}
		if err := s.WriteTo(ctx, p); err != nil {
			return err
		}
		if err := writeUint32(w, 0); err != nil {
			return err
		}
	}
	return nil
}

// Close implements [member.Snapshot].
func (v *groupsView) Close() (err error) {
	for _, s := range v.views {
		err = errors.Join(err, s.Close())
	}
	return err
}

func writeUint32(w io.Writer, n uint32) error {
	_, err := w.Write(binary.LittleEndian.AppendUint32(nil, n))
	return err
}

// pieces writes what it is given as pieces, and reads pieces as what they were made of.
type pieces struct {
	w    io.Writer
	r    io.Reader
	left uint32 // of the piece that is being read
	end  bool   // the last piece was read
}

func (p *pieces) Write(b []byte) (n int, err error) {
	const most = 1 << 20
	for part := range slices.Chunk(b, most) {
		if err := writeUint32(p.w, uint32(len(part))); err != nil {
			return n, err
		}
		written, err := p.w.Write(part)
		if n += written; err != nil {
			return n, err
		}
	}
	return n, nil
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.left == 0 && !p.end {
		n, err := readUint32(p.r)
		if err != nil {
			return 0, whole(err)
		}
		p.left, p.end = n, n == 0
	}
	if p.end {
		return 0, io.EOF
	}
	n, err := p.r.Read(b[:min(len(b), int(p.left))])
	p.left -= uint32(n)
	if n > 0 {
		err = nil // what is wrong behind it is found by the next Read
	}
	return n, whole(err)
}

// whole is an error for bytes that end too early.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func readUint32(r io.Reader) (uint32, error) {
	var b [4]byte
	_, err := io.ReadFull(r, b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

// Restore implements [member.StateMachine].
func (g *Groups) Restore(r io.Reader) error { return g.restore(r, g.ids) }

// restore replaces the states of some groups by those that a Snapshot wrote.
func (g *Groups) restore(r io.Reader, some []protocol.InstanceID) error {
	for {
		id, err := readUint32(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return whole(err)
		}
		at := slices.Index(g.ids, protocol.InstanceID(id))
		if at < 0 {
			return &protocol.CorruptError{What: "state of groups", Detail: fmt.Sprintf("there is no group %d", id)}
		}
		p := &pieces{r: r}
		if slices.Contains(some, g.ids[at]) {
			if err := g.machines[at].Restore(p); err != nil {
				return err
			}
		}
		if _, err := io.Copy(io.Discard, p); err != nil {
			return err
		}
	}
}

// Merge takes over the groups in which a snapshot is ahead. The state of the others stays. A batch of
// this member for which the snapshot stands is told that its result is not known.
func (a *Applier) Merge(meta *member.Meta, state io.Reader) error {
	g, keyed := a.sm.(*Groups)
	if !keyed {
		return &intake.GroupError{Detail: "the order is not keyed"}
	}
	at := a.order.Cursor()
	ahead := at.AheadIn(&meta.Cursor)
	taken := ahead
	if a.mutant == member.MutantWholeSnapshot {
		taken = g.ids
	}
	if err := g.restore(state, taken); err != nil {
		return &member.MachineError{Op: "restore", Err: err}
	}
	a.order.Install(meta.Cursor.Clone())
	a.sessions.Take(ahead, meta.Sessions)
	for _, id := range ahead {
		in := a.Of(id)
		in.settle(meta.Cursor.Point(id).Index, func(b *intake.Batch) { b.Fail(member.ErrResultUnknown) })
		base := meta.Base(id)
		in.Config, in.waiting, in.resident = base.Config.Clone(), 0, 0
	}
	a.Changes++
	return a.advance()
}
