package history

import (
	"sync"
	"time"
)

// History is what a member did lately: samples of ten minutes by seconds and of an hour by ten seconds, and the last
// events. It is safe for concurrent use.
type History struct {
	mu     sync.Mutex
	boot   string
	fine   series[Sample]
	coarse series[Sample]
	events series[Event]
	flood  map[string]*recent // by kind and member
	// The readings with which the next samples begin; nil: there is none.
	last, lastCoarse *Reading
}

// New returns an empty history. Boot names the start of the member whose history it is; "": that is not known yet.
func New(boot string) *History {
	return &History{
		boot: boot, fine: series[Sample]{most: mostFine}, coarse: series[Sample]{most: mostCoarse},
		events: series[Event]{most: mostEvents}, flood: map[string]*recent{},
	}
}

// Record takes a reading of this member, once in [Fine].
func (h *History) Record(r *Reading) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		h.last, h.lastCoarse = r, r
		return
	}
	h.fine.add(between(h.last, r))
	h.last = r
	if r.At.Sub(h.lastCoarse.At) > Coarse-Fine/2 {
		h.coarse.add(between(h.lastCoarse, r))
		h.lastCoarse = r
	}
}

// Events of one kind about one member are at most eventsBurst in eventsEvery; further ones are not held. So what
// happens over and over does not push out all others.
const (
	eventsBurst = 5
	eventsEvery = time.Minute
)

// recent counts the events of a kind since a time, in milliseconds since 1970.
type recent struct {
	since int64
	n     int
}

// Add adds an event of this member.
func (h *History) Add(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := e.Kind + " " + e.About
	r := h.flood[key]
	if r == nil {
		r = &recent{}
		h.flood[key] = r
	}
	if e.At-r.since >= eventsEvery.Milliseconds() {
		r.since, r.n = e.At, 0
	}
	if r.n++; r.n <= eventsBurst {
		h.events.add(e)
	}
}

// Position is how far someone knows a history.
type Position struct {
	Boot   string `json:"boot"`
	Fine   uint64 `json:"fine"`
	Coarse uint64 `json:"coarse"`
	Events uint64 `json:"events"`
}

// Part is what a history has after a position.
type Part struct {
	Reset  bool     `json:"reset"` // it is all that is held
	Fine   Samples  `json:"fine"`  // oldest first
	Coarse Samples  `json:"coarse"`
	Events []Event  `json:"events"`
	Next   Position `json:"next"`
}

// Since returns what came after a position: everything, if the position is of another history or so old that samples
// between are held no more.
func (h *History) Since(p Position) Part {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := p.Boot == h.boot
	if !known {
		p = Position{}
	}
	fine, gapless := h.fine.since(p.Fine)
	if !gapless {
		fine, _ = h.fine.since(0)
		p = Position{}
	}
	coarse, _ := h.coarse.since(p.Coarse)
	events, _ := h.events.since(p.Events)
	return Part{
		Reset: !known || !gapless, Fine: fine, Coarse: coarse, Events: events,
		Next: Position{h.boot, h.fine.last, h.coarse.last, h.events.last},
	}
}

// Take continues a copy of another member's history by a part of it that was asked for with [History.At].
func (h *History) Take(p *Part) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.boot = p.Next.Boot
	h.fine.take(p.Fine, p.Next.Fine, p.Reset)
	h.coarse.take(p.Coarse, p.Next.Coarse, p.Reset)
	h.events.take(p.Events, p.Next.Events, p.Reset)
}

// At is the position of the end of a history.
func (h *History) At() Position {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Position{h.boot, h.fine.last, h.coarse.last, h.events.last}
}

// Merged are the samples of a part in one order of time: the coarse ones are those of before the fine ones, and none
// unless the part is all.
func (p *Part) Merged() Samples {
	if !p.Reset {
		return p.Fine
	}
	var out Samples
	for _, s := range p.Coarse {
		if len(p.Fine) == 0 || s.At < p.Fine[0].At {
			out = append(out, s)
		}
	}
	return append(out, p.Fine...)
}

// Event is something that happened to a member.
type Event struct {
	At    int64  `json:"at"`    // in milliseconds since 1970
	Level string `json:"level"` // info, warn or error
	Kind  string `json:"kind"`  // one of [Kinds]
	Text  string `json:"text"`
	About string `json:"about,omitempty"` // the member, if it is about another one than that to which it happened
}

// Boot names a start of a member by its time.
func Boot(at time.Time) string { return at.UTC().Format("20060102T150405.000000000") }
