package diagram

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// row is a row of the diagram.
type row struct {
	event
	sent   time.Duration // of a message that arrived: when it was sent
	again  bool          // it had arrived before
	vanish bool          // it was sent, and the trace shows no arrival
	begins *row          // of several folded rows: the first
	also   []string      // further lines of the trace, which belong to the row
}

// missed reports whether the row is a message that never arrives.
func (r *row) missed() bool { return r.kind == lost || r.vanish }

// first returns the row itself, or the first one that it stands for.
func (r *row) first() *row { return cmp.Or(r.begins, r) }

// lines are the lines of the trace that the row stands for.
func (r *row) lines() []string { return append([]string{r.line}, r.also...) }

// story makes rows of events.
type story struct {
	rows    []*row
	flying  map[string][]*row        // messages that have not arrived, by flight
	landed  map[string]bool          // those that have, by flight
	places  map[string]string        // where a client's operation was asked
	changed map[string]time.Duration // when a member last started, stopped or changed its role
}

func newStory() *story {
	return &story{flying: map[string][]*row{}, landed: map[string]bool{}, places: map[string]string{},
		changed: map[string]time.Duration{}}
}

// flight identifies a message by its sender, its receiver, the time of its sending and its text.
func flight(e *event, at time.Duration) string {
	return strings.Join([]string{e.from, e.to, strconv.FormatInt(int64(at), 10), e.text}, "|")
}

// arrival begins the last part of the line of an arrival: the time of the sending.
const arrival = "  (sent "

// add adds an event.
func (s *story) add(e event) {
	r := &row{event: e}
	switch e.kind {
	case sent:
		r.vanish = true // until it arrives
		key := flight(&e, e.at)
		s.flying[key] = append(s.flying[key], r)
	case arrived:
		s.arrive(r)
	case asked:
		s.places[e.op] = e.to
	case answered:
		r.to = cmp.Or(e.to, s.places[e.op])
	case own:
		if turns(e.text) {
			s.changed[e.to] = e.at
		}
	}
	s.rows = append(s.rows, r)
}

// arrive joins the arrival of a message and its sending. The row of the sending stays only if its sender has changed
// meanwhile: then the message is from an earlier role.
func (s *story) arrive(r *row) {
	r.sent = r.at
	text, when, ok := strings.Cut(r.text, arrival)
	if !ok {
		return
	}
	r.text = text
	if at, ok := instant(strings.TrimSuffix(when, ")")); ok {
		r.sent = at
	}
	key := flight(&r.event, r.sent)
	r.again = s.landed[key]
	if f := s.flying[key]; len(f) > 0 {
		s.flying[key], r.again = f[1:], false
		s.landed[key] = true
		r.also = append(r.also, f[0].line)
		f[0].vanish = false
		if s.changed[r.from] <= r.sent {
			f[0].kind = joined
		}
	}
}

// more adds a line that belongs to the event before.
func (s *story) more(line string) {
	last := s.rows[len(s.rows)-1]
	last.text += "; " + line
	last.also = append(last.also, line)
}

// settled returns the rows to draw. keep reports whether a row with a line of the trace is drawn; nil: all rows are. A
// message has two lines, one for its sending and one for its arrival, and is drawn if either is kept.
func (s *story) settled(keep func(line string) bool) (out []*row) {
	for _, r := range s.rows {
		if r.kind != joined && (keep == nil || slices.ContainsFunc(r.lines(), keep)) {
			out = append(out, r)
		}
	}
	return out
}
