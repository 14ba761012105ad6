package scale

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// carry records the output of a turn, which leaves when the turn is over. There are no reads, bodies, snapshots of
// other members or membership changes.
func (l *loop) carry(t *instance.Turn) {
	w := l.m.w
	if t.AskMissing != 0 || t.Install != nil {
		w.note(&behindError{l.m.id})
	}
	if t.Forgot != nil {
		w.note(cluster.Forgotten(l.m.id, t.Forgot))
	}
	if t.Stop != nil {
		w.note(t.Stop)
	}
	for _, m := range t.Send {
		_, err := l.sender.Send(m)
		w.note(err)
	}
	if t.Seq > 0 {
		l.logs = append(l.logs, logWork{records: t.Persist, seq: t.Seq})
	}
	for _, b := range t.Accepted {
		b.Accept(w.now)
	}
	if n := len(t.Commit.Entries); n > 0 {
		l.committed += n
		l.commits = append(l.commits, t.Commit)
	}
	for _, f := range t.Failed {
		f.Batch.Fail(f.Err)
	}
	for _, r := range t.Refused {
		w.note(&member.RefusedError{What: "membership change", Reason: r.Reason, Leader: r.Leader})
	}
	if t.Suspect != 0 {
		l.suspect(t.Suspect)
	}
	for _, s := range t.Snapshots {
		w.note(&behindError{s.To})
	}
	if t.Status != nil {
		l.status = t.Status
	}
	w.note(t.Departed)
}

// suspect tells the other instances that a leader was silent for too long.
func (l *loop) suspect(leader protocol.MemberID) {
	for _, o := range l.m.loops {
		if o != l {
			o.input(protocol.Suspect{Member: leader})
		}
	}
}

// NoteLoad implements instance.Source, as Waiting, TakeBatch and TakeReads do. It also ends the measurement of a
// proposal.
func (l *loop) NoteLoad(load instance.Load) {
	l.load = load
	if m := l.m.w.meter; m != nil {
		m.proposed()
	}
}

func (l *loop) Waiting() (bytes int, full bool, path protocol.Path) {
	return l.m.proposals.WaitingFor(l.instance)
}

// TakeBatch also begins the measurement of a proposal.
func (l *loop) TakeBatch() *intake.Batch {
	b := l.m.proposals.TakeFor(l.instance)
	if m := l.m.w.meter; m != nil {
		m.proposes()
	}
	return b
}

func (l *loop) TakeReads() []*intake.ReadGroup { return nil }

// Risen implements instance.Rounds, as ReportRounds and Wanted do.
func (l *loop) Risen() uint64 { return l.m.weaver.Risen }

func (l *loop) ReportRounds(t instance.InstanceRounds, wake []protocol.InstanceID) (order.Slot, []protocol.InstanceID) {
	wake = l.m.weaver.Set(t, wake)
	return l.m.weaver.Want(l.instance), wake
}

func (l *loop) Wanted() order.Slot { return l.m.weaver.Want(l.instance) }

// Frame implements instance.Links.
func (l *loop) Frame(m *protocol.Message) ([][]byte, error) {
	l.framed = m
	if m := l.m.w.meter; m != nil {
		m.frames()
	}
	return l.m.framer.Frame(m)
}

// Transmit implements instance.Links. The message is the last one that was framed. All streams of the instance share
// a link here.
func (l *loop) Transmit(_ *protocol.Message, _ uint32, parts [][]byte) bool {
	f := newFrame(l.framed, parts)
	l.cost.on(l.m.w.steps.Frame, len(f.msg.Entries), 0)
	if m := l.m.w.meter; m != nil {
		f.wire = m.framed(f.msg, parts)
	}
	l.frames = append(l.frames, f)
	return true
}

// siblings are the instances of a member, for the turn of one of them. All are always active.
type siblings struct{ of *loop }

// IDs implements instance.Siblings, as the methods below do.
func (s siblings) IDs() []protocol.InstanceID { return s.of.m.ids }

func (s siblings) Load(i int) instance.Load { return s.of.m.loops[i].load }

func (s siblings) Status(i int) *protocol.Status { return s.of.m.loops[i].status }

// Wake wakes an instance at the end of the turn.
func (s siblings) Wake(i int) { s.of.wakes = append(s.of.wakes, s.of.m.loops[i]) }

// behindError reports that a member is so far behind that it needs a snapshot.
type behindError struct{ member protocol.MemberID }

func (e *behindError) Error() string {
	return "scale: member " + e.member.String() + " needs a snapshot, which the model does not have"
}
