package diagram

import (
	"bufio"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	width    = 120 // of a line, in characters
	first    = 18  // the column of the first member's line; before it are the times
	farthest = 22  // between two members' lines, at most
	nearest  = 5   // and at least, even if lines get longer then
	last     = 40  // after the last member's line, at least
	often    = 40  // rows of a page
)

const legend = "Time goes down. + is how long a message took from the sender to the receiver, " +
	`✗ is one that never arrives.
Members: │ up  ║ leads  ┆ paused  (nothing) down.   ★ leader  ○ starts  ✝ down  ▼ request  ▲ answer  ● another step
At the right are a message's fields. [2 batch×3] is entry 2 with 3 commands. "… repeated" are messages without news.
`

// pausing is a fault that stops a process for a while.
var pausing = regexp.MustCompile(`^FAULT (\w+) (?:pauses|freezes in a turn) until (\d+\.\d+)`)

// life is the state of a member.
type life struct {
	up     bool
	leads  map[string]bool // instances
	paused time.Duration   // until when
}

// picture draws rows.
type picture struct {
	out    *bufio.Writer
	names  []string       // of members, in the order of their columns
	place  map[string]int // the column of each member's line
	lives  map[string]*life
	width  int
	margin int           // the column where the fields of messages begin
	at     time.Duration // of the latest row
}

func newPicture(out *bufio.Writer) *picture {
	return &picture{out: out, lives: map[string]*life{}, at: -1}
}

// page begins a page, with the names of the members above their lines.
func (p *picture) page(names []string) {
	p.names, p.place, p.at = names, map[string]int{}, -1
	gap := max(nearest, min(farthest, (width-first-last)/max(1, len(names)-1)))
	end := first + (len(names)-1)*gap
	p.width, p.margin = max(width, end+last), end+3
	c := blank(p.width)
	c.put(0, "  time s    took")
	for i, name := range names {
		p.place[name] = first + i*gap
		c.put(p.place[name], name)
	}
	fmt.Fprintln(p.out, c)
}

// of returns the state of a member.
func (p *picture) of(name string) *life {
	if p.lives[name] == nil {
		p.lives[name] = &life{leads: map[string]bool{}}
	}
	return p.lives[name]
}

// update updates the state of members after an event.
func (p *picture) update(r *row) {
	if m := pausing.FindStringSubmatch(r.text); m != nil {
		p.of(m[1]).paused, _ = instant(m[2])
	}
	if r.kind != own {
		return
	}
	l := p.of(r.to)
	if r.text == "is up" || r.text == "is down" {
		*l = life{up: r.text == "is up", leads: map[string]bool{}}
	}
	if m := role.FindStringSubmatch(r.text); m != nil {
		delete(l.leads, m[3])
		if m[1] == "leader" {
			l.leads[m[3]] = true
		}
	}
}

// draw draws a row.
func (p *picture) draw(r *row) {
	c := p.begin(r)
	text := words(r)
	switch {
	case r.kind == wide:
		p.across(c, text)
	case r.kind == folded:
		c.put(first+2, text+" ")
	case r.kind == arrived || r.missed():
		p.arrow(c, r, text)
	case r.kind == sent:
		p.alone(c, r.from, "▷", text)
	default:
		p.alone(c, r.to, sign(r), text)
	}
	fmt.Fprintln(p.out, c)
}

// begin returns a line with the time, if it is another one than that of the row before, and with members' lines.
func (p *picture) begin(r *row) canvas {
	c := blank(p.width)
	if r.at != p.at {
		c.put(0, fmt.Sprintf("%8.3f", r.at.Seconds()))
	}
	p.at = r.at
	if r.kind == arrived {
		c.put(9, fmt.Sprintf("%7s", took(r.at-r.sent)))
	}
	for _, name := range p.names {
		c[p.place[name]] = p.of(name).line(r.at)
	}
	return c
}

// line is the character of a member's line.
func (l *life) line(now time.Duration) rune {
	switch {
	case !l.up:
		return ' '
	case l.paused > now:
		return '┆'
	case len(l.leads) > 0:
		return '║'
	}
	return '│'
}

// across draws a row of the whole cluster.
func (p *picture) across(c canvas, text string) {
	c.fill(first-1, p.width, '═')
	c.put(first+1, " "+cut(text, p.width-first-3)+" ")
}

// alone draws a step of one member. A client whose request is not in the trace has no member.
func (p *picture) alone(c canvas, member, mark, text string) {
	x, ok := p.place[member]
	if !ok {
		p.across(c, text)
		return
	}
	c.put(x, mark+" "+text)
}

// arrow draws a message: an arrow with its type, if there is room, and its fields right of the columns of all members.
func (p *picture) arrow(c canvas, r *row, text string) {
	from, to := p.place[r.from], p.place[r.to]
	left, right, tip, head := from+1, to, to-1, '▶'
	if to < from {
		left, right, tip, head = to+1, from, to+1, '◀'
	}
	c.fill(left, right, '─')
	if c[tip] = head; r.missed() {
		c[tip] = '✗'
	}
	name := typed.FindStringSubmatch(text)[1]
	if length, room := utf8.RuneCountInString(name), right-left-5; length <= room {
		c.put(left+2+(room-length+1)/2, " "+name+" ")
		text = strings.TrimPrefix(text[len(name):], " ")
	}
	c.put(p.margin, text)
}
