package diagram

import (
	"regexp"
	"strings"
	"time"
)

// kind is the kind of an event.
type kind uint8

// The kinds of events.
const (
	wide     kind = iota // of the cluster: a fault, a phase of the run
	sent                 // a message leaves its sender
	lost                 // it leaves, and never arrives
	arrived              // it arrives
	own                  // a step of one member
	asked                // a client's request, at a member
	answered             // the answer to a client
	joined               // the sending of a message whose arrival has a row
	folded               // several rows that repeat earlier ones
)

// event is a line of a trace.
type event struct {
	line string // without the end of line
	at   time.Duration
	kind kind
	from string // of a message: its sender
	to   string // of a message: its receiver; otherwise the member, if the line names one
	op   string // of asked and answered: the number of the operation, if the line has one
	text string
}

var (
	timed   = regexp.MustCompile(`^ *(\d+\.\d{6})  (.*)$`)
	message = regexp.MustCompile(`^([0-9a-f]+) (→|←) ([0-9a-f]+) (.*)$`)
	alone   = regexp.MustCompile(`^([0-9a-f]+)(?:   | (?:stops|does not start|finds|is told|tick))`)
	request = regexp.MustCompile(`^client \d+ asks ([0-9a-f]+): (\d+) `)
	reading = regexp.MustCompile(`^client \d+ reads at ([0-9a-f]+): `)
	answer  = regexp.MustCompile(`^client \d+ (?:has|is refused) (\d+)`)
	marks   = regexp.MustCompile(`  \((lost|no link)\)$`)
)

// read returns the event of a line. It reports false if the line has no time: it is a setting of the run, or belongs
// to the line before.
func read(line string) (event, bool) {
	parts := timed.FindStringSubmatch(line)
	if parts == nil {
		return event{line: line, text: line}, false
	}
	e := event{line: line, text: parts[2]}
	e.at, _ = instant(parts[1])
	e.classify()
	return e, true
}

// instant parses seconds with six digits after the point.
func instant(text string) (time.Duration, bool) {
	d, err := time.ParseDuration(text + "s")
	return d, err == nil
}

// classify sets the kind and the members.
func (e *event) classify() {
	if m := message.FindStringSubmatch(e.text); m != nil {
		e.message(m[1], m[2] == "→", m[3], m[4])
	} else if m := alone.FindStringSubmatch(e.text); m != nil {
		e.kind, e.to, e.text = own, m[1], strings.TrimLeft(e.text[len(m[1]):], " ")
	} else if m := request.FindStringSubmatch(e.text); m != nil {
		e.kind, e.to, e.op = asked, m[1], m[2]
	} else if m := reading.FindStringSubmatch(e.text); m != nil {
		e.kind, e.to = answered, m[1]
	} else if m := answer.FindStringSubmatch(e.text); m != nil {
		e.kind, e.op = answered, m[1]
	}
}

// message sets the fields of a message. Its line is one of the first member: the message leaves it, or arrives there.
func (e *event) message(first string, leaves bool, second, text string) {
	e.text = text
	if !leaves {
		e.kind, e.from, e.to = arrived, second, first
		return
	}
	e.kind, e.from, e.to = sent, first, second
	if marks.MatchString(text) {
		e.kind, e.text = lost, marks.ReplaceAllString(text, "")
	}
}
