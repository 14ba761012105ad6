package page

import "github.com/braidlog/braid"

// Epoch is about an epoch; see braid.EpochStatus.
type Epoch struct {
	Number    uint64    `json:"number"`
	First     uint64    `json:"first_index"`
	Last      uint64    `json:"last_index"`
	Ending    bool      `json:"ending,omitempty"`
	Unsettled bool      `json:"unsettled,omitempty"`
	NoQuorum  bool      `json:"no_quorum,omitempty"`
	Segments  []Segment `json:"segments"`
	Banned    []string  `json:"banned,omitempty"`
	Until     []uint64  `json:"banned_until,omitempty"`
	Slots     uint64    `json:"slots"`
	Skipped   uint64    `json:"skipped"`
}

type Segment struct {
	Leader  string `json:"leader"`
	Last    uint64 `json:"last_index"`
	Decided uint64 `json:"decided_index"`
	Slots   int    `json:"slots"`
	Skipped int    `json:"skipped"`
	Ballot  uint64 `json:"ballot,omitempty"`
	By      string `json:"by,omitempty"`
}

func viewEpoch(e *braid.EpochStatus) *Epoch {
	if e == nil {
		return nil
	}
	v := &Epoch{
		Number: e.Number, First: uint64(e.First), Last: uint64(e.Last), Ending: e.Ending, Unsettled: e.Unsettled,
		NoQuorum: e.NoQuorum, Until: e.BannedUntil,
		Segments: make([]Segment, 0, len(e.Segments)), Slots: e.Slots, Skipped: e.Skipped,
	}
	for i := range e.Segments {
		s := &e.Segments[i]
		v.Segments = append(v.Segments, Segment{
			Leader: s.Leader.String(), Last: uint64(s.Last), Decided: uint64(s.Decided), Slots: s.Slots, Skipped: s.Skipped,
			Ballot: s.Ballot, By: name(s.By),
		})
	}
	for _, id := range e.Banned {
		v.Banned = append(v.Banned, id.String())
	}
	return v
}
