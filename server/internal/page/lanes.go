package page

import "github.com/braidlog/braid"

// Lanes is about lanes; see braid.LanesStatus.
type Lanes struct {
	Open          bool   `json:"open"`
	Accepted      uint64 `json:"accepted"`
	Generation    uint64 `json:"generation"`
	Accepting     bool   `json:"accepting"`
	Fence         bool   `json:"fence,omitempty"`
	ByLeader      bool   `json:"by_leader,omitempty"`
	WindowBytes   int    `json:"window_bytes"`
	Lanes         []Lane `json:"lanes"`
	SentBytes     uint64 `json:"sent_bytes"`
	ReceivedBytes uint64 `json:"received_bytes"`
	SparedBytes   uint64 `json:"spared_bytes"`
	WholeGroups   uint64 `json:"whole_groups"`
	WholeBytes    uint64 `json:"whole_bytes"`
	Missed        uint64 `json:"missed"`
	Refused       uint64 `json:"refused"`
}

type Lane struct {
	Member    string `json:"member"`
	Life      uint32 `json:"life"`
	Own       bool   `json:"own,omitempty"` // of this incarnation of the member that reports it
	Confirmed uint64 `json:"confirmed"`
	Durable   uint64 `json:"durable"`
	Held      uint64 `json:"held"`
	HeldBytes int    `json:"held_bytes"`
}

func viewLanes(l *braid.LanesStatus) *Lanes {
	if l == nil {
		return nil
	}
	c := &l.Counts
	v := &Lanes{
		Open: l.Open, Accepted: l.Accepted, Generation: l.Generation, Accepting: l.Accepting, Fence: l.Fence,
		ByLeader: l.ByLeader, WindowBytes: l.Window, Lanes: make([]Lane, 0, len(l.Lanes)),
		SentBytes: c.SentBytes, ReceivedBytes: c.ReceivedBytes, SparedBytes: c.SparedBytes,
		WholeGroups: c.WholeGroups, WholeBytes: c.WholeBytes, Missed: c.Missed, Refused: c.Refused,
	}
	for _, h := range l.Lanes {
		v.Lanes = append(v.Lanes, Lane{
			Member: h.Lane.Member.String(), Life: h.Lane.Number(), Own: h.Lane == l.Own,
			Confirmed: h.Confirmed, Durable: h.Durable, Held: h.Held, HeldBytes: h.HeldBytes,
		})
	}
	return v
}
