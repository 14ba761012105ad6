package instance

import (
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// tick lets time pass.
func (h *Hosted) tick() {
	h.Step(protocol.Tick{Random: h.happened.Random, Applied: h.placed()})
	h.tend()
	if !h.first() {
		return
	}
	h.noteLogs()
	for _, b := range h.happened.Expired {
		h.out.Failed = append(h.out.Failed, FailedBatch{Batch: b, Err: b.Abandoned()})
	}
}

// placed is how far this member has applied the instance; 0: the order is keyed. A change of the number
// of instances counts when it is in effect.
func (h *Hosted) placed() protocol.Index {
	at := &h.happened.At
	index := at.Point(h.cfg.Instance).Index
	switch {
	case at.Keyed:
		return 0
	case at.Reshape != 0 && index > 0:
		return index - 1
	}
	return index
}

// mergeRounds reports the rounds of this instance to the others, and makes it skip the rounds for which they wait. It
// does so in the turn in which the records of both go to the disk.
func (h *Hosted) mergeRounds() {
	siblings := h.calls.Siblings()
	if len(siblings.IDs()) == 1 || h.retired.endsAt > 0 {
		return
	}
	now := h.clock.Now()
	t := h.inst.Rounds(now)
	risen := h.calls.Rounds.Risen()
	if t == h.merge.thread && risen == h.merge.risen {
		return // nothing is new, neither here nor with the others
	}
	var want order.Slot
	h.merge.risen = risen
	if t == h.merge.thread {
		want = h.calls.Rounds.Wanted()
	} else {
		want, h.merge.wakes = h.calls.Rounds.ReportRounds(t, h.merge.wakes[:0])
		h.merge.thread = t
		for _, id := range h.merge.wakes {
			if i := slices.Index(siblings.IDs(), id); i >= 0 {
				siblings.Wake(i)
			}
		}
	}
	h.inst.SkipRounds(now, want, &h.out)
}

// tend checks once in a heartbeat whether another member should lead the instance, whether its members are those of the
// first one, whether other instances still have members that it removed, and whether its leader knows that other
// instances wait for it.
func (h *Hosted) tend() {
	siblings, now := h.calls.Siblings(), h.clock.Now()
	if h.retired.endsAt > 0 || now-h.tended.at < h.cfg.Heartbeat {
		return
	}
	turn := slices.Index(siblings.IDs(), h.cfg.Instance)
	if turn < 0 {
		return // it is retired, and learns of it soon
	}
	h.searchBeyond()
	if h.retain(siblings); len(siblings.IDs()) == 1 {
		return
	}
	h.tended.at, h.merge.risen = now, ^uint64(0) // a skip may have been refused
	h.Step(protocol.Place{At: turn})
	h.inst.Remind(now, h.cfg.Heartbeat, h.calls.Rounds.Wanted(), &h.out)
	st := h.status
	if st.Role != protocol.Leader {
		h.lead.stays = false
	}
	leader, timeout := siblings.Status(0).Leader, 2*h.cfg.Election
	preferred := h.cfg.Leaders.Preferred(st.Config.Turns(), turn, leader)
	if slices.Contains(h.happened.Drained, preferred) && h.cfg.Mutant != member.MutantDrainUnheeded {
		preferred = 0
	}
	to := preferred
	if h.lead.stays || !h.cfg.Leaders.Moves() {
		to = 0
	}
	if to = h.lead.preference.Next(now, timeout, st, to); to != 0 {
		h.Step(protocol.Transfer{To: to})
	}
	if st.Term == 0 && preferred == h.cfg.Self && (turn > 0 || !h.cfg.Leaders.Moves()) {
		h.Step(protocol.Stand{})
	}
	if turn == 0 {
		return
	}
	if to := h.search.Next(now, h.cfg.Election, st.Leader != 0, siblings.Status(0)); to != 0 {
		h.missing = to
	}
	if target := h.following.Next(now, timeout, &h.happened.Configs[0], st); target != nil {
		h.Step(protocol.ProposeChange{Target: target})
	}
}

// retain tells the core which members the other instances have, if that has changed.
func (h *Hosted) retain(siblings Siblings) {
	h.tended.scratch = h.tended.scratch[:0]
	add := func(id protocol.MemberID) {
		if i, known := slices.BinarySearch(h.tended.scratch, id); !known {
			h.tended.scratch = slices.Insert(h.tended.scratch, i, id)
		}
	}
	for i, id := range siblings.IDs() {
		if id == h.cfg.Instance {
			continue
		}
		c := &siblings.Status(i).Config
		for j := range c.Members {
			add(c.Members[j].ID)
		}
		for _, id := range c.Outgoing {
			add(id)
		}
	}
	if !slices.Equal(h.tended.scratch, h.tended.others) {
		h.tended.others = slices.Clone(h.tended.scratch)
		h.Step(protocol.Retain{Members: h.tended.others})
	}
}

// NamesDue reports whether a tick should look for what the membership does not name: once in a heartbeat, if this
// member leads. Only the first instance's counts.
func (h *Hosted) NamesDue() bool {
	return h.status.Role == protocol.Leader && h.calls.Now()-h.tended.namedAt >= h.cfg.Heartbeat
}

// noteLogs proposes that the membership names whose log each member has, where it does not.
func (h *Hosted) noteLogs() {
	t := h.happened
	if !t.Named {
		return
	}
	h.tended.namedAt = h.clock.Now()
	if len(t.Unnamed) > 0 && t.At.Reshape == 0 && member.Settled(&h.status.Config, t.Configs[1:]) {
		h.Step(protocol.ProposeChange{Changes: t.Unnamed})
	}
}

// depart returns why the member is to stop, because the cluster continues without it; nil: it continues.
func (h *Hosted) depart() error {
	siblings := h.calls.Siblings()
	instances := make([]*protocol.Status, 0, 8)
	for i, id := range siblings.IDs() {
		st := h.status // this one's is to be published
		if id != h.cfg.Instance {
			st = siblings.Status(i)
		}
		instances = append(instances, st)
	}
	if why := h.departure.Next(h.clock.Now(), h.cfg.Election, &h.happened.At, instances); why != nil {
		return why
	}
	return nil
}

// MergeStatus is how an instance stands in the merging of the global log.
type MergeStatus struct {
	Instance protocol.InstanceID
	// Filled is how many rounds its log fills forever. Tail is how many it fills up to its end.
	Filled, Tail protocol.Round
	// Want is the furthest slot that it wants the others to reach.
	Want order.Slot
	// Skips counts the skips that this member proposed in this incarnation. Waiting is how many entries are committed
	// and wait in the order, without those that have nothing to apply.
	Skips   uint64
	Waiting int
}

// MergeStatus is how the instance stands in the merging of the logs; nil: its log is the global log.
func (h *Hosted) MergeStatus() *MergeStatus {
	tail := h.inst.Tail()
	if tail == nil {
		return nil
	}
	return &MergeStatus{
		Instance: h.cfg.Instance, Filled: tail.CommittedRound(), Tail: tail.Round(), Want: tail.Want(), Skips: h.inst.Skips(),
	}
}
