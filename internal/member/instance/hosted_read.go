package instance

import (
	"maps"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/protocol"
)

// read asks for the read indexes of the groups that wait.
func (h *Hosted) read() {
	for _, g := range h.calls.Source.TakeReads() {
		h.Read(g)
	}
}

// Read asks the instance for its read index for a group, which has begun to wait for it. It is called within a turn.
func (h *Hosted) Read(g *intake.ReadGroup) {
	h.reads.last++
	h.reads.groups[h.reads.last] = g
	h.inst.Read(h.clock.Now(), protocol.Read{Context: h.reads.last, Barrier: g.Barrier}, &h.out)
}

// handReads moves what the core says about reads into the turn.
func (h *Hosted) handReads(out *Outbox) {
	for _, p := range out.Reads {
		if g := h.reads.groups[p.Context]; g != nil {
			delete(h.reads.groups, p.Context)
			h.turn.ReadIndexes = append(h.turn.ReadIndexes, ReadIndex{g, p.Index})
		}
	}
	for _, context := range out.FailedReads {
		if g := h.reads.groups[context]; g != nil {
			delete(h.reads.groups, context)
			h.turn.FailedReads = append(h.turn.FailedReads, g)
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

// Retire ends what this member does through the instance, which is not active any more. Another instance is to take
// the batches again, and read indexes are to be asked for again for the groups. It is called within a turn.
func (h *Hosted) Retire() (batches []*intake.Batch, groups []*intake.ReadGroup) {
	h.retired.endsAt, h.retired.bytes = h.clock.Now()+retiredFor*h.cfg.Election, h.happened.AppliedBytes
	return h.inst.Retire(), h.removeGroups()
}

// retiredFor is how many election timeouts a retired instance stays for members that are a little behind. Later they
// need a snapshot. All that is written to the log meanwhile stays too, so that is bounded: see crowds.
const retiredFor = 10

// crowds reports whether more was applied since the instance was retired than log is kept for members that catch up,
// and snapshots stand for the instance's log.
func (h *Hosted) crowds() bool {
	saved := h.happened.Saved
	return h.happened.AppliedBytes-h.retired.bytes > h.cfg.KeepLogBytes &&
		saved.Oldest.Retired(h.cfg.Instance) && saved.Newest.Retired(h.cfg.Instance)
}

// endRetired ends an instance that is retired and has stayed long enough. Its log is given up, and
// what only its log needs. If a snapshot is from before the instance was retired, this member needs
// the log to start again from there, or would break its word as a voter. So a newer snapshot is
// written at once. The one before it may be needed if that is damaged, and goes with the next one that
// is due.
func (h *Hosted) endRetired() {
	saved := h.happened.Saved
	if !h.happened.Active && !saved.Newest.Retired(h.cfg.Instance) {
		h.turn.WantSnapshot = true // as long as the state has not come there, none says it
	}
	if !saved.Oldest.Retired(h.cfg.Instance) && h.cfg.Mutant != member.MutantGiveUpEarly ||
		!saved.Newest.Retired(h.cfg.Instance) {
		h.retired.endsAt, h.retired.waits = h.clock.Now()+h.cfg.Election, true
		return
	}
	h.retired.ended, h.turn.Cut = true, member.AllIndexes
}

// Abandon ends the instance. Nothing more will be answered; the groups that it returns are to be failed.
func (h *Hosted) Abandon() []*intake.ReadGroup {
	h.inst.Abandon(member.ErrStopped)
	return h.removeGroups()
}
