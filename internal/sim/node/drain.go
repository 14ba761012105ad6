package node

import (
	"slices"

	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/protocol"
)

// Drains of members, by the rules of production. Announcements are messages on links.

var drainHandovers = count.New("leaderships_handed_over_by_drained_members", "leaders handed over by drained members")

// draining is the drain of a member, and its knowledge of the drains of others.
type draining struct {
	own    *drain // nil: the member may lead
	others instance.Drained
}

// drain is the drain of a member, until draining.own is another one.
type drain struct {
	leaving instance.StopHandover
	notice  instance.DrainNotice
}

// Drain makes a running member lead nothing until it is called with false, or the member stops.
func (m *Member) Drain(on bool) {
	m.WhenAwake(func() {
		switch d := &m.draining; {
		case on && d.own == nil:
			d.own = &drain{leaving: instance.StopHandover{Drains: true}}
			d.own.notice.Mutant = m.Env.Set.MutantName()
			m.handOver(d.own)
		case !on && d.own != nil:
			d.own = nil
			m.announceDrain(false)
		}
	})
}

// Drains reports whether the member is drained.
func (r *Running) Drains() bool { return r.draining.own != nil }

// Drained returns the other members that are drained, as far as this one knows.
func (m *Member) Drained() []protocol.MemberID { return m.draining.others.Now(m.Clock()) }

// handOver hands over what the member leads, again and again while it is drained.
func (m *Member) handOver(d *drain) {
	if m.draining.own != d {
		return
	}
	if d.notice.Due(m.Clock(), m.tuning.Election) {
		m.announceDrain(true)
	}
	d.leaving.Config = m.Operations.Config
	up := func(id protocol.MemberID) bool { return m.Env.Member(id).Up && !m.Env.severed(m, id) }
	gives, _ := d.leaving.Next(m.Clock(), m.Statuses(), up, m.Drained())
	m.Env.Events.Add(drainHandovers, len(gives))
	m.Tell(gives)
	m.Later(m.tuning.Heartbeat/4, func() { m.handOver(d) })
}

// announceDrain announces to the other members whether this one is drained.
func (m *Member) announceDrain(drained bool) {
	for _, to := range m.Memberships()[0].Members {
		if to.ID != m.ID {
			m.ask(to.ID, func(o *Member) {
				o.draining.others.Note(o.Clock(), o.tuning.Election, m.ID, drained)
			}, nil)
		}
	}
}

// LeadsSegment reports whether the member leads a segment of a current epoch.
func (r *Running) LeadsSegment() bool {
	return slices.ContainsFunc(r.Statuses(), func(st *protocol.Status) bool {
		return st.Epoch != nil && slices.ContainsFunc(st.Epoch.Segments, func(s protocol.SegmentStatus) bool {
			return s.Leader == st.Self
		})
	})
}

// LeadsByElection reports whether the member leads an instance whose leader does not follow from the log.
func (r *Running) LeadsByElection() bool {
	return slices.ContainsFunc(r.Statuses(), func(st *protocol.Status) bool {
		return st.Role == protocol.Leader && st.Epoch == nil
	})
}
