package instance

import (
	"maps"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/protocol"
)

// read asks for a read point on behalf of the readers of a group. The first instance begins, and
// makes the others ask too.
func (h *Hosted) read() {
	asked, gathered := h.host.TakeReads()
	for _, g := range asked {
		h.readFor(g)
	}
	for _, g := range gathered {
		if g != nil {
			h.BeginRead(g)
		}
	}
}

// BeginRead asks all instances for a group's read point. Only the first instance does so. It is
// called within a turn.
func (h *Hosted) BeginRead(g *intake.ReadGroup) {
	siblings := h.host.Siblings()
	ids := siblings.IDs()
	if !h.host.AskRead(g, siblings.Since(), ids) {
		return
	}
	for i := 1; i < len(ids); i++ {
		siblings.HandRead(i, g)
	}
	h.readFor(g)
}

// readFor asks the instance for its part of a group's read point. The group waits for read points
// by now.
func (h *Hosted) readFor(g *intake.ReadGroup) {
	h.reads.last++
	h.reads.groups[h.reads.last] = g
	h.inst.Read(h.clock.Now(), protocol.Read{Context: h.reads.last, Barrier: g.Barrier}, &h.out)
}

func (h *Hosted) finishReads(out *Outbox) {
	for _, p := range out.Reads {
		if g := h.reads.groups[p.Context]; g != nil {
			delete(h.reads.groups, p.Context)
			h.host.ReadPoint(g, p.Index)
		}
	}
	for _, context := range out.FailedReads {
		if g := h.reads.groups[context]; g != nil {
			delete(h.reads.groups, context)
			h.host.FailRead(g, member.ErrReadTimeout)
		}
	}
}

// removeGroups removes the groups that wait for the core and returns them, in the order in which they asked.
func (h *Hosted) removeGroups() (groups []*intake.ReadGroup) {
	for _, context := range slices.Sorted(maps.Keys(h.reads.groups)) {
		groups = append(groups, h.reads.groups[context])
	}
	clear(h.reads.groups)
	return groups
}

// Retire ends what this member does through the instance, which is not in force any more. Another
// instance takes what was proposed here. It is called within a turn.
func (h *Hosted) Retire() {
	h.host.Again(h.inst.Retire())
	h.host.AskAgain(append(h.host.RetireReads(), h.removeGroups()...))
	h.retired.endsAt = h.clock.Now() + retiredFor*h.cfg.Election
}

// retiredFor is how many election timeouts a retired instance stays for members that are a little
// behind. Later they need a snapshot.
const retiredFor = 10

// endRetired ends an instance that is retired and has stayed long enough. Its log is given up, and
// what only its log needs. If a snapshot is from before the instance was retired, this member needs
// the log to start again from there, or would break its word as a voter. So a newer snapshot is
// written at once. The one before it may be needed if that is damaged, and goes with the next one that
// is due.
func (h *Hosted) endRetired() {
	saved := h.host.Saved()
	if _, _, inForce := h.host.AppliedOf(); !inForce && !saved.Newest.Retired(h.cfg.Instance) {
		h.host.WantSnapshot() // as long as the state has not come there, none says it
	}
	if !saved.Oldest.Retired(h.cfg.Instance) && h.cfg.Mutant != member.MutantGiveUpEarly || !saved.Newest.Retired(h.cfg.Instance) {
		h.retired.endsAt = h.clock.Now() + h.cfg.Election
		return
	}
	h.retired.ended = true
	h.host.BodiesCompacted(member.AllIndexes)
	h.host.CutLog(member.AllIndexes)
}

// Abandon ends the instance. Nothing more will be answered.
func (h *Hosted) Abandon(err error) {
	for _, g := range h.removeGroups() {
		h.host.FailRead(g, err)
	}
	h.inst.Abandon(member.ErrStopped)
}
