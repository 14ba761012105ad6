package epochs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// The name under which a snapshot has a history.
const (
	SectionName    = "epochs"
	sectionVersion = 1 // no voter has a zone
	zonesVersion   = 2
)

// Section is the history for a snapshot. A history that knows nothing has none.
func (h *History) Section() protocol.Section {
	e := h.epoch
	if e == nil {
		return protocol.Section{}
	}
	b := h.set.numbers(nil)
	b = appendNumbers(b, uint64(h.slots), e.Number, h.since, uint64(e.First), uint64(h.next))
	b = appendNumbers(b, uint64(len(h.records)))
	for _, r := range h.records {
		b = appendNumbers(b, uint64(r.id), r.suspected, uint64(r.penalty), uint64(r.left), uint64(r.share))
	}
	b = appendNumbers(b, uint64(len(e.Leaders)))
	for at, id := range e.Leaders {
		b = appendNumbers(b, uint64(id), uint64(h.loads[at]), bit(h.ended[at]))
	}
	b = appendNumbers(b, uint64(len(h.voters)))
	for _, id := range h.voters {
		b = appendNumbers(b, uint64(id))
	}
	if e.Zones == nil && h.zones == nil {
		return protocol.Section{Name: SectionName, Version: sectionVersion, Data: b}
	}
	b = appendTexts(appendTexts(b, e.Zones), h.zones)
	return protocol.Section{Name: SectionName, Version: zonesVersion, Data: b}
}

// appendTexts appends a list of texts with its length.
func appendTexts(b []byte, texts []string) []byte {
	b = appendNumbers(b, uint64(len(texts)))
	for _, t := range texts {
		b = append(appendNumbers(b, uint64(len(t))), t...)
	}
	return b
}

// equalShares is added to the number of the policy.
const equalShares = 1 << 8

func (s *Settings) numbers(b []byte) []byte {
	who := uint64(s.Policy)
	if s.EqualShares {
		who |= equalShares
	}
	return appendNumbers(b, uint64(s.MinSlots), uint64(s.MaxSlots), who, uint64(s.Ban), uint64(s.MaxBan))
}

func appendNumbers(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Restore replaces this history by that of a section. It refuses a section with other settings: they derive other
// epochs from the same log.
func (h *History) Restore(s protocol.Section) error {
	if s.Version != zonesVersion || s.Name != SectionName {
		if err := s.Expect(SectionName, sectionVersion); err != nil {
			return err
		}
	}
	rest, ok := bytes.CutPrefix(s.Data, h.set.numbers(nil))
	if !ok {
		return &protocol.SectionError{Name: s.Name, Version: s.Version,
			Detail: fmt.Sprintf("is not of the settings %+v", h.set)}
	}
	restored, err := read(rest, h.set, s.Version == zonesVersion)
	if err == nil {
		err = restored.Check()
	}
	if err == nil && !bytes.Equal(restored.Section().Data, s.Data) {
		err = fmt.Errorf("it says the same in other bytes")
	}
	if err != nil {
		return &protocol.SectionError{Name: s.Name, Version: s.Version, Detail: "cannot be read: " + err.Error()}
	}
	*h = *restored
	return nil
}

// maxSlot is the highest first slot of an epoch, so that its last slot does not overflow.
const maxSlot = 1 << 62

// read decodes a history from the bytes after the settings. It refuses only what the decoder could not handle; Check
// refuses the rest.
func read(b []byte, set Settings, zoned bool) (*History, error) {
	r := &reader{b: b}
	h := &History{set: set, slots: int(r.number(1 << 16))}
	number := r.number(1<<64 - 1)
	h.since = r.number(1<<64 - 1)
	first := protocol.Index(r.number(maxSlot))
	h.next = protocol.Index(r.number(1<<64 - 1))
	for range r.count() {
		h.records = append(h.records, record{
			id: protocol.MemberID(r.number(1<<64 - 1)), suspected: r.number(1<<64 - 1),
			penalty: uint32(r.number(1 << 16)), left: uint32(r.number(1 << 16)), share: uint8(r.number(fullShare)),
		})
	}
	var leaders []protocol.MemberID
	for range r.count() {
		leaders = append(leaders, protocol.MemberID(r.number(1<<64-1)))
		h.loads = append(h.loads, uint32(r.number(1<<32-1)))
		h.ended = append(h.ended, r.number(1) == 1)
	}
	for range r.count() {
		h.voters = append(h.voters, protocol.MemberID(r.number(1<<64-1)))
	}
	var zones []string
	if zoned {
		zones, h.zones = r.texts(), r.texts()
	}
	var voters []protocol.MemberID
	for i := range h.records {
		voters = append(voters, h.records[i].id)
	}
	switch {
	case r.failed || len(r.b) > 0:
		return nil, fmt.Errorf("%d bytes, of which %d are left", len(b), len(r.b))
	case !members(voters) || !members(leaders) || !members(h.voters) || len(leaders) > MaxLeaders:
		return nil, fmt.Errorf("members %s, leaders %s, next %s", voters, leaders, h.voters)
	case h.slots < fullShare || slices.ContainsFunc(h.records, func(r record) bool { return r.share == 0 }):
		return nil, fmt.Errorf("segments of %d slots, records %+v", h.slots, h.records)
	case slices.ContainsFunc(leaders, func(id protocol.MemberID) bool { return h.of(id) == nil }):
		return nil, fmt.Errorf("leaders %s of %s", leaders, voters)
	case !zonesOf(zones, voters) || !zonesOf(h.zones, h.voters):
		return nil, fmt.Errorf("zones %q of %s, next %q of %s", zones, voters, h.zones, h.voters)
	}
	h.create(number, first, leaders, zones)
	return h, nil
}

// members reports whether a list of members is not empty, and strictly ascending.
func members(ids []protocol.MemberID) bool {
	last := protocol.MemberID(0)
	for _, id := range ids {
		if id <= last {
			return false
		}
		last = id
	}
	return len(ids) > 0
}

// zonesOf reports whether a list has the zone of each voter, and one of them has one; or is nil.
func zonesOf(zones []string, voters []protocol.MemberID) bool {
	named := func(z string) bool { return z != "" }
	invalid := func(z string) bool { return protocol.CheckZone(z) != nil }
	return zones == nil ||
		len(zones) == len(voters) && slices.ContainsFunc(zones, named) && !slices.ContainsFunc(zones, invalid)
}

// reader decodes what appendNumbers encoded. After an error it returns zeros.
type reader struct {
	b      []byte
	failed bool
}

// number reads a number from 0 to most.
func (r *reader) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most || r.failed {
		r.failed = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads the length of a list, each item of which has at least a byte.
func (r *reader) count() int { return int(r.number(uint64(len(r.b)))) }

// texts reads a list of texts; nil if it is empty.
func (r *reader) texts() (all []string) {
	for range r.count() {
		n := min(r.count(), len(r.b)) // the bytes of the number do not count
		all = append(all, string(r.b[:n]))
		r.b = r.b[n:]
	}
	return all
}
