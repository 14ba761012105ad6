package scale

import (
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// What an instance asks of the member around it: loop implements instance.Host. Effects wait until
// the turn ends. There are no reads, bodies, snapshots of other members or changes of the
// membership, so nothing is asked of them.

// Now implements instance.Host, as the other methods of loop in this file do.
func (l *loop) Now() time.Duration { return l.m.w.now }

func (l *loop) Siblings() instance.Siblings { return siblings{l} }

func (l *loop) Input(in protocol.Input) { l.input(in) }

func (l *loop) Publish(st *protocol.Status) { l.status = st }

// NoteLoad also ends the measurement of a proposal.
func (l *loop) NoteLoad(load instance.Load) {
	l.load = load
	if m := l.m.w.meter; m != nil {
		m.proposed()
	}
}

func (l *loop) NoteWeave(*instance.WeaveStatus) {}

func (l *loop) Relink(bool) {}

func (l *loop) Fail(err error) { l.m.w.note(err) }

func (l *loop) Condemn(f *protocol.Forgot) { l.m.w.note(cluster.Forgotten(l.m.id, f)) }

func (l *loop) Waiting() (bytes int, full bool) { return l.m.proposals.WaitingFor(l.instance) }

// TakeBatch also begins the measurement of a proposal.
func (l *loop) TakeBatch() *intake.Batch {
	b := l.m.proposals.TakeFor(l.instance)
	if m := l.m.w.meter; m != nil {
		m.proposes()
	}
	return b
}

func (l *loop) TakeReads() []*intake.ReadGroup { return nil }

func (l *loop) Risen() uint64 { return l.m.weaver.Risen }

func (l *loop) Weave(t instance.InstanceRounds, wake []protocol.InstanceID) (order.Slot, []protocol.InstanceID) {
	wake = l.m.weaver.Set(t, wake)
	return l.m.weaver.Want(l.instance), wake
}

func (l *loop) Wanted() order.Slot { return l.m.weaver.Want(l.instance) }

func (l *loop) Refused(r protocol.Rejection) {
	l.m.w.note(&member.RefusedError{What: "membership change", Reason: r.Reason, Leader: r.Leader})
}

func (l *loop) Frame(m *protocol.Message) ([][]byte, error) {
	l.framed = m
	if m := l.m.w.meter; m != nil {
		m.frames()
	}
	return l.m.framer.Frame(m)
}

// Transmit implements instance.Host. The message is the one that was framed last. All streams of the
// instance share a link here.
func (l *loop) Transmit(_ protocol.MemberID, _ uint32, parts [][]byte) bool {
	f := newFrame(l.framed, parts)
	l.cost.on(l.m.w.steps.Frame, len(f.msg.Entries), 0)
	if m := l.m.w.meter; m != nil {
		f.wire = m.framed(f.msg, parts)
	}
	l.frames = append(l.frames, f)
	return true
}

func (l *loop) Unreadable(_ *protocol.Message, err error, _ instance.Remedy) { l.m.w.note(err) }

func (l *loop) SendSnapshot(to protocol.MemberID, _ *member.SnapshotOffer) {
	l.m.w.note(&behindError{to})
}

func (l *loop) AskMissing(protocol.MemberID) { l.m.w.note(&behindError{l.m.id}) }

func (l *loop) Submit(records []wal.Record, seq uint64) {
	l.logs = append(l.logs, logWork{records: records, seq: seq})
}

func (l *loop) CutLog(at protocol.Index) { l.logs = append(l.logs, logWork{cut: at}) }

func (l *loop) Harmed(err *member.LoadError) { l.m.w.note(err) }

func (l *loop) At() (order.Cursor, []protocol.Config) { return l.m.apply.known.At() }

func (l *loop) Install(*protocol.Base) { l.m.w.note(&behindError{l.m.id}) }

func (l *loop) Commit(c intake.CommittedEntries) {
	l.committed += len(c.Entries)
	l.commits = append(l.commits, c)
}

func (l *loop) ReadPoint(*intake.ReadGroup, protocol.Index) {}

func (l *loop) FailRead(*intake.ReadGroup, error) {}

func (l *loop) WantSnapshot() {}

func (l *loop) TendState(*protocol.Status) {}

func (l *loop) BodiesInstalling(protocol.Index) {}

func (l *loop) BodiesCommitted([]protocol.Entry) {}

func (l *loop) BodiesCompacted(protocol.Index) {}

func (l *loop) Want([]protocol.BodyRef) {}

// siblings are the instances of a member, for the turn of one of them. All are always in force.
type siblings struct{ of *loop }

// IDs implements instance.Siblings, as the methods below do.
func (s siblings) IDs() []protocol.InstanceID { return s.of.m.ids }

func (s siblings) Load(i int) instance.Load { return s.of.m.loops[i].load }

func (s siblings) Status(i int) *protocol.Status { return s.of.m.loops[i].status }

// Wake has an instance woken when the turn ends.
func (s siblings) Wake(i int) { s.of.wakes = append(s.of.wakes, s.of.m.loops[i]) }

func (s siblings) Tell(i int, in protocol.Input) { s.of.m.loops[i].input(in) }

// behindError says that a member is so far behind that it needs a snapshot.
type behindError struct{ member protocol.MemberID }

func (e *behindError) Error() string {
	return "scale: member " + e.member.String() + " needs a snapshot, which the model does not have"
}
