package protocol

import "slices"

// Seals are the EntrySeals of a core's log that have no verdict yet, for a core that can tell its log's last decided
// index. See [Sealed] for what follows from them.
type Seals struct {
	// at are the indexes of the entries, ascending, also of entries that were compacted since.
	at     []Index
	judged Index // the entries up to this one have a verdict, also those that are not in the log yet
	closed bool
}

// Note notes an entry that the log has now, decided or not.
func (s *Seals) Note(e *Entry) {
	if e.Kind != EntrySeal || e.Index <= s.judged || slices.Contains(s.at, e.Index) {
		return
	}
	s.at = append(s.at, e.Index)
	slices.Sort(s.at)
}

// Cut forgets the entries from an index on: they are not in the log any more.
func (s *Seals) Cut(from Index) {
	s.at = slices.DeleteFunc(s.at, func(i Index) bool { return i >= from })
}

// Install forgets all entries, in favor of a snapshot.
func (s *Seals) Install() { s.at = nil }

// Judge takes in a verdict. A verdict says also that earlier EntrySeals of the log do not count.
func (s *Seals) Judge(in Sealed) {
	if in.Counts {
		s.at, s.closed = nil, true
	}
	s.judged = max(s.judged, in.Index)
	s.at = slices.DeleteFunc(s.at, func(i Index) bool { return i <= in.Index })
}

// Proposed reports whether there is an EntrySeal without a verdict, or one that counts: nothing is proposed behind it.
func (s *Seals) Proposed() bool { return s.closed || len(s.at) > 0 }

// Suspended reports whether an EntrySeal is decided, given the last decided index, and is not known to do nothing.
func (s *Seals) Suspended(decided Index) bool { return s.closed || len(s.at) > 0 && s.at[0] <= decided }

// Closed reports whether an EntrySeal counts: the core has ended.
func (s *Seals) Closed() bool { return s.closed }

// First is the first EntrySeal without a verdict; 0: there is none.
func (s *Seals) First() Index {
	if len(s.at) == 0 {
		return 0
	}
	return s.at[0]
}

// State describes the seals for a Status.
func (s *Seals) State(decided Index) SealState {
	switch {
	case s.closed:
		return SealClosed
	case s.Suspended(decided):
		return SealSuspended
	case s.Proposed():
		return SealProposed
	}
	return SealNone
}
