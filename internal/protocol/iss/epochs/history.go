package epochs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// History applies the log, slot by slot, and derives the next epoch. It is a [protocol.Derived]. Members with equal
// logs have equal histories. It is not safe for concurrent use.
//
// A slot has a value if it has an entry other than a no-op. A slot without a value is ⊥, whether it has a no-op or no
// entry was applied there.
type History struct {
	set Settings
	// epoch is the epoch of next; nil: nothing is known, not even the voters.
	epoch *Epoch
	// next is the first slot that was not applied.
	next protocol.Index
	// loads are how many slots of each of the epoch's leaders have a value that is not empty, and ended
	// whether the last one of its segment has a value.
	loads []uint32
	ended []bool
	// slots is how many slots a leader with a full share has, MinSlots to MaxSlots.
	slots int
	// lead is one of the epoch's leaders, and since the epoch since which it has been lead.
	lead  protocol.MemberID
	since uint64
	// records are those of the epoch's voters.
	records []record
	// voters are those of the next epoch, ascending, and zones the zone of each; nil: none has one.
	voters []protocol.MemberID
	zones  []string
}

// New begins before slot 1 with epoch 1, in which all voters of the configuration lead. The settings must be valid.
// If the configuration has no voters, the history knows nothing, and Epoch is nil: then Restore must be called before
// anything is applied.
func New(set Settings, c protocol.Config) *History {
	if err := set.Validate(); err != nil {
		panic("epochs: " + err.Error())
	}
	h := &History{set: set, next: 1, slots: set.MinSlots, voters: c.Voters(), zones: quorum.ZonesOf(&c)}
	if len(h.voters) > 0 {
		h.begin(1)
	}
	return h
}

// Epoch is the epoch of the next slot; nil: the history knows nothing.
func (h *History) Epoch() *Epoch { return h.epoch }

// Next is the first slot that was not applied.
func (h *History) Next() protocol.Index { return h.next }

// Lead is one of the leaders, and the number of the epoch since which it has been Lead without interruption. They are
// shown to clients that expect one leader and a term. It has the smallest penalty, so it is not a member that has
// failed; of several, it has the lowest id. (0, 0): the history knows nothing.
func (h *History) Lead() (leader protocol.MemberID, since uint64) { return h.lead, h.since }

// leading is the leader of the epoch that clients are shown.
func (h *History) leading() protocol.MemberID {
	return slices.MinFunc(h.epoch.Leaders, func(a, b protocol.MemberID) int {
		return cmp.Or(cmp.Compare(h.of(a).penalty, h.of(b).penalty), cmp.Compare(a, b))
	})
}

// BannedUntil is the epoch in which a voter that does not lead leads again, if no voter is suspected before; 0: it
// leads, or something else keeps it from leading.
func (h *History) BannedUntil(voter protocol.MemberID) uint64 {
	at := slices.IndexFunc(h.records, func(r record) bool { return r.id == voter })
	if at < 0 {
		return 0
	}
	return bannedUntil(h.records, at, h.epoch.Number, &h.set)
}

// Spent reports whether a further suspicion would change nothing for a voter: its last ban had the greatest length,
// or there are no bans.
func (h *History) Spent(voter protocol.MemberID) bool {
	at := slices.IndexFunc(h.records, func(r record) bool { return r.id == voter })
	return h.set.Policy == Simple || at >= 0 && int(h.records[at].penalty) >= h.set.MaxBan
}

// Apply applies the next entry. All slots before it that were not applied have no value. Entries without a value are
// ignored, because an order may leave them out. Pass applies slots without values at the end of the log.
func (h *History) Apply(e *protocol.Entry) {
	switch e.Kind {
	case protocol.EntryNoop, protocol.EntrySkip, protocol.EntryReshape:
		return
	}
	if e.Index < h.next {
		panic(fmt.Sprintf("epochs: slot %d after slot %d", e.Index, h.next-1))
	}
	h.Pass(e.Index - 1)
	if e.Kind == protocol.EntryConfig {
		h.follow(e)
	}
	at := h.epoch.Place(e.Index)
	h.ended[at] = e.Index == h.epoch.ends[at]
	if e.Kind != protocol.EntryEmpty {
		h.loads[at]++
	}
	h.advance()
}

// follow records the voters of the next epoch. The last configuration of an epoch counts.
func (h *History) follow(e *protocol.Entry) {
	c, err := protocol.DecodeConfig(e.Payload)
	if err != nil {
		panic(fmt.Sprintf("epochs: slot %d: %v", e.Index, err)) // it was readable when it was accepted
	}
	h.voters, h.zones = c.Voters(), quorum.ZonesOf(&c)
}

// Pass applies slots up to one, which have no values. Slots that were applied before are ignored.
func (h *History) Pass(to protocol.Index) {
	if h.epoch == nil {
		panic("epochs: the history began with no voters, and must be restored first")
	}
	for h.next <= to {
		h.advance()
	}
}

// advance continues at the next slot, and with the next epoch after the last slot of one.
func (h *History) advance() {
	if h.next++; h.next > h.epoch.Last {
		h.end()
	}
}

// end ends the epoch, and begins the next one.
func (h *History) end() {
	h.adapt()
	for i := range h.records {
		r := &h.records[i]
		switch at, led := slices.BinarySearch(h.epoch.Leaders, r.id); {
		case led && !h.ended[at]:
			r.suspect(h.epoch.Number, &h.set)
		default:
			r.serve(led, &h.set)
		}
	}
	h.begin(h.epoch.Number + 1)
}

// begin begins an epoch with the voters of the last configuration. Records of those that left are dropped, and those
// that are new begin with the first share.
func (h *History) begin(number uint64) {
	records := make([]record, len(h.voters))
	for i, id := range h.voters {
		records[i] = record{id: id, share: h.set.firstShare()}
		if r := h.of(id); r != nil {
			records[i] = *r
		}
	}
	h.records = records
	before, leaders := h.lead, elect(records, number, &h.set)
	if h.create(number, h.next, leaders, h.zones); h.lead != before {
		h.since = number
	}
	h.loads, h.ended = make([]uint32, len(leaders)), make([]bool, len(leaders))
}

// create creates the epoch of the voters that have records, in these zones.
func (h *History) create(number uint64, first protocol.Index, leaders []protocol.MemberID, zones []string) {
	voters, shares := make([]protocol.MemberID, len(h.records)), make([]uint8, len(leaders))
	for i := range h.records {
		voters[i] = h.records[i].id
	}
	for at, id := range leaders {
		shares[at] = h.of(id).share
	}
	h.epoch = newEpoch(number, first, h.slots/fullShare, voters, leaders, shares)
	h.epoch.Zones = zones
	h.lead = h.leading()
}

// of is the record of a voter of the epoch; nil: the member is not one.
func (h *History) of(id protocol.MemberID) *record {
	at, ok := slices.BinarySearchFunc(h.records, id,
		func(r record, id protocol.MemberID) int { return cmp.Compare(r.id, id) })
	if !ok {
		return nil
	}
	return &h.records[at]
}
