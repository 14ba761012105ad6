package history

import (
	"sync"
	"time"
)

// History has samples of a member, for each second of ten minutes and each ten seconds of an hour, and its last events.
// It is safe for concurrent use.
type History struct {
	mu     sync.Mutex
	boot   string
	fine   series[Sample]
	coarse series[Sample]
	events series[Event]
	recent map[string]*recent // by kind and member
	// The readings with which the next samples begin; nil: there is none.
	last, lastCoarse *Reading
}

// New returns an empty history. Boot names the start of the member whose history it is; "": that is not known yet.
func New(boot string) *History {
	return &History{
		boot: boot, fine: series[Sample]{most: mostFine}, coarse: series[Sample]{most: mostCoarse},
		events: series[Event]{most: mostEvents}, recent: map[string]*recent{},
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

// At most eventsBurst events of one kind about one member are kept for each eventsEvery, so that an event that repeats
// does not displace all others.
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
	r := h.recent[key]
	if r == nil {
		r = &recent{}
		h.recent[key] = r
	}
	if e.At-r.since >= eventsEvery.Milliseconds() {
		r.since, r.n = e.At, 0
	}
	if r.n++; r.n <= eventsBurst {
		h.events.add(e)
	}
}

// Position is a position in a history: the numbers of the last samples and event before it.
type Position struct {
	Boot   string `json:"boot"`
	Fine   uint64 `json:"fine"`
	Coarse uint64 `json:"coarse"`
	Events uint64 `json:"events"`
}

// Part is a history after a position.
type Part struct {
	Reset  bool     `json:"reset"` // it is all that is held
	Fine   Samples  `json:"fine"`  // oldest first
	Coarse Samples  `json:"coarse"`
	Events []Event  `json:"events"`
	Next   Position `json:"next"`
}

// Since returns the history after a position. It returns all of it if the position is in another history, or so old
// that samples after it are no longer kept.
func (h *History) Since(p Position) Part {
	h.mu.Lock()
	defer h.mu.Unlock()
	reset := p.Boot != h.boot || !h.fine.has(p.Fine)
	if reset {
		p = Position{}
	}
	return Part{
		Reset: reset, Fine: h.fine.since(p.Fine), Coarse: h.coarse.since(p.Coarse), Events: h.events.since(p.Events),
		Next: h.end(),
	}
}

// Extend extends a copy of another member's history by a part of that, after the position [History.End] of the copy.
func (h *History) Extend(p *Part) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.boot = p.Next.Boot
	h.fine.extend(p.Fine, p.Next.Fine, p.Reset)
	h.coarse.extend(p.Coarse, p.Next.Coarse, p.Reset)
	h.events.extend(p.Events, p.Next.Events, p.Reset)
}

// End is the position of the end of a history.
func (h *History) End() Position {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end()
}

func (h *History) end() Position { return Position{h.boot, h.fine.last, h.coarse.last, h.events.last} }

// Merged are the samples of a part in order of time. If the part is all, coarse ones come before the first fine one.
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
	About string `json:"about,omitempty"` // another member that the event is about
}

// Boot names a start of a member by its time.
func Boot(at time.Time) string { return at.UTC().Format("20060102T150405.000000000") }
