package diagram

import (
	"bufio"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"
)

const (
	width    = 120 // of a line, in characters
	first    = 18  // the column of the first member's line; before it are the times
	farthest = 40  // between two members' lines, at most
	nearest  = 6   // and at least, even if lines get longer then
	last     = 26  // after the last member's line, at least
	often    = 40  // rows from one line of names to the next
)

const legend = `Time goes down. + is how long a message took from the sender to the receiver, ✗ is one that never arrives.
Members: │ up  ║ leads  ┆ pauses  (nothing) down.   ★ leader  ○ starts  ✝ down  ▼ request  ▲ answer  ● another step
[2 batch×3] is entry 2 with 3 commands. "… repeated" stands for messages that tell nothing new.
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
	out   *bufio.Writer
	names []string
	place map[string]int // the column of each member's line
	lives map[string]*life
	width int
	at    time.Duration // of the latest row
	rows  int
}

// newPicture returns a picture of members, in the order of their columns.
func newPicture(out *bufio.Writer, names []string) *picture {
	p := &picture{out: out, names: names, place: map[string]int{}, lives: map[string]*life{}, at: -1}
	gap := max(nearest, min(farthest, (width-first-last)/max(1, len(names)-1)))
	for i, name := range names {
		p.place[name] = first + i*gap
		p.lives[name] = &life{leads: map[string]bool{}}
	}
	p.width = max(width, first+(len(names)-1)*gap+last)
	return p
}

// live updates the state of members after an event.
func (p *picture) live(r *row) {
	if m := pausing.FindStringSubmatch(r.text); m != nil && p.lives[m[1]] != nil {
		p.lives[m[1]].paused, _ = instant(m[2])
	}
	l := p.lives[r.to]
	if r.kind != own || l == nil {
		return
	}
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
	if p.rows%often == 0 {
		p.header()
	}
	p.rows++
	c := p.begin(r)
	text := words(r)
	switch {
	case r.kind == wide:
		p.across(c, r, text)
	case r.kind == folded:
		c.put(first+2, text+" ")
	case r.kind == lost || r.kind == arrived || r.kind == sent && r.vanish:
		p.arrow(c, r, text)
	case r.kind == sent:
		p.alone(c, r.from, "▷", text)
	default:
		p.alone(c, r.to, sign(r), text)
	}
	fmt.Fprintln(p.out, c)
}

// header prints the names of the members above their lines.
func (p *picture) header() {
	c := blank(p.width)
	c.put(0, "  time s    took")
	for _, name := range p.names {
		c.put(p.place[name], name)
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
		c[p.place[name]] = p.lives[name].line(r.at)
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

// across draws what concerns the cluster.
func (p *picture) across(c canvas, _ *row, text string) {
	c.fill(first-1, p.width, '═')
	c.put(first+1, " "+cut(text, p.width-first-3)+" ")
}

// alone draws what one member does. A client whose request is not in the trace has no member.
func (p *picture) alone(c canvas, member, mark, text string) {
	x, ok := p.place[member]
	if !ok {
		p.across(c, nil, text)
		return
	}
	c.put(x, mark)
	c.beside(first, x, x, text)
}

// arrow draws a message. Its text is in the arrow, or beside it if the arrow is too short for it.
func (p *picture) arrow(c canvas, r *row, text string) {
	from, to := p.place[r.from], p.place[r.to]
	head, left, right := '▶', from+1, to
	if to < from {
		head, left, right = '◀', to+1, from
	}
	c.fill(left, right, '─')
	tip := right - 1
	if to < from {
		tip = left
	}
	if c[tip] = head; r.kind != arrived {
		c[tip] = '✗'
	}
	length := utf8.RuneCountInString(text)
	if inside := right - left - 5; length <= inside {
		c.put(left+2+(inside-length+1)/2, " "+text+" ")
		return
	}
	c.beside(first, left-1, right, text)
}
