package netspec

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Spec is a parsed specification. The zero value emulates nothing. A Spec never changes.
type Spec struct {
	all     settings // of all links and members
	regions []string // of members, by number
	members []memberPart
	pairs   []pairPart // those that count more last
}

// Link is the emulated link from one member to another. A round trip takes the latencies of both directions.
type Link struct {
	// Latency delays every byte one way; Jitter adds a random time between −Jitter and
	// +Jitter to it. Nothing is reordered within a connection, as TCP would not.
	Latency, Jitter time.Duration
	// Loss is the percentage of packets that are lost; 100: the link is cut.
	Loss float64
}

// Cut reports whether nothing arrives.
func (l Link) Cut() bool { return l.Loss >= cutLoss }

// cutLoss is the loss of a link that is cut, in percent.
const cutLoss = 100

// Cards are a member's network cards.
type Cards struct {
	// Egress is the budget of each card in bits per second; 0: no bound.
	Egress int64
	// Number is how many there are; 0 is 1.
	Number int
}

// settings are what a part sets.
type settings struct {
	link  Link
	cards Cards
	has   setting
}

// setting is a set of settings.
type setting uint8

const (
	hasLatency setting = 1 << iota
	hasJitter
	hasLoss
	hasEgress
	hasCards
	hasRegion
	hasRegions
)

// over overrides the fields of a link that s sets.
func (s *settings) over(l *Link) {
	if s.has&hasLatency != 0 {
		l.Latency = s.link.Latency
	}
	if s.has&hasJitter != 0 {
		l.Jitter = s.link.Jitter
	}
	if s.has&hasLoss != 0 {
		l.Loss = s.link.Loss
	}
}

// memberPart is about one member, or the members of a region.
type memberPart struct {
	who selector
	settings
	region string
}

// pairPart is about the way from some members to others, or about both ways.
type pairPart struct {
	from, to selector
	both     bool
	settings
}

// selector is the members that a part is about: * for all members, a region, a number, or a name.
type selector struct {
	text string
	kind selectorKind
}

// selectorKind is ordered by how much a part counts.
type selectorKind int

const (
	anybody selectorKind = iota
	inRegion
	byNumber
	byName
)

// rank is how much a part counts: a number is as good as a name.
func (s selector) rank() int { return int(min(s.kind, byNumber)) }

// matches reports whether a part is about a member.
func (s selector) matches(m *place) bool {
	switch s.kind {
	case anybody:
		return true
	case inRegion:
		return s.text == m.region
	case byNumber:
		return s.text == m.number
	}
	return s.text == m.name
}

// place is a member, and where it is.
type place struct{ name, number, region string }

// maxNumber is how many digits a member's number may have.
const maxNumber = 9

// numberOf is the number in which a name ends, without zeros before it; "": none.
func numberOf(name string) string {
	digits := name[len(strings.TrimRight(name, "0123456789")):]
	if digits == "" {
		return ""
	}
	digits = cmp.Or(strings.TrimLeft(digits, "0"), "0")
	if len(digits) > maxNumber {
		return ""
	}
	return digits
}

// place finds out where a member is.
func (s *Spec) place(name string) place {
	p := place{name: name, number: numberOf(name)}
	if n, err := strconv.Atoi(p.number); err == nil && len(s.regions) > 0 {
		k := len(s.regions)
		p.region = s.regions[(n+k-1)%k] // 1 is the first; where members are counted from 0, 0 is the last
	}
	rank := -1
	for i := range s.members {
		if m := &s.members[i]; m.has&hasRegion != 0 && m.who.rank() >= rank &&
			m.who.matches(&place{name: name, number: p.number}) {
			rank, p.region = m.who.rank(), m.region
		}
	}
	return p
}

// Region is the region of a member; "": it has none.
func (s *Spec) Region(name string) string { return s.place(name).region }

// Link is the emulated link from one member to another. A name that is not known ("") has no
// number, no name and no region.
func (s *Spec) Link(from, to string) Link {
	l := s.all.link
	a, b := s.place(from), s.place(to)
	if trip, ok := roundTrips()[[2]string{a.region, b.region}]; ok {
		l.Latency = trip / 2
	} else if a.region != "" && a.region == b.region {
		l.Latency = within / 2
	}
	for i := range s.pairs {
		p := &s.pairs[i]
		if p.from.matches(&a) && p.to.matches(&b) || p.both && p.from.matches(&b) && p.to.matches(&a) {
			p.over(&l)
		}
	}
	return l
}

// Cards are the network cards of a member.
func (s *Spec) Cards(name string) Cards {
	c, where := s.all.cards, s.place(name)
	rank := -1
	for i := range s.members {
		if m := &s.members[i]; m.has&hasEgress != 0 && m.who.rank() >= rank && m.who.matches(&where) {
			rank, c.Egress = m.who.rank(), m.cards.Egress
		}
	}
	return c
}

// Enabled reports whether anything is emulated. Network cards alone are not: they are only counted.
func (s *Spec) Enabled() bool {
	const shapes = hasLatency | hasJitter | hasLoss | hasEgress
	zero := s.all.link == Link{} && s.all.cards.Egress == 0
	return !zero || len(s.regions) > 0 || len(s.pairs) > 0 ||
		slices.ContainsFunc(s.members, func(m memberPart) bool { return m.has&(shapes|hasRegion) != 0 })
}

// Farthest is the longest latency between any two members: no link has more latency and jitter.
func (s *Spec) Farthest() time.Duration {
	latency, jitter := s.all.link.Latency, s.all.link.Jitter
	used := s.used()
	for _, a := range used {
		for _, b := range used {
			latency = max(latency, roundTrips()[[2]string{a, b}]/2)
		}
		latency = max(latency, within/2)
	}
	for i := range s.pairs {
		latency, jitter = max(latency, s.pairs[i].link.Latency), max(jitter, s.pairs[i].link.Jitter)
	}
	return latency + jitter
}

// used lists the regions in which members are.
func (s *Spec) used() []string {
	out := slices.Clone(s.regions)
	for i := range s.members {
		if r := s.members[i].region; r != "" {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// LatencyOnly returns an error if the specification sets more than latencies.
func (s *Spec) LatencyOnly() error {
	has := s.all.has
	for i := range s.members {
		has |= s.members[i].has
	}
	for i := range s.pairs {
		has |= s.pairs[i].has
	}
	for _, n := range names {
		if n.what&(hasLoss|hasEgress|hasCards)&has != 0 {
			return &Error{Spec: s.String(), Part: n.key, Detail: "here links have latency, jitter and regions alone"}
		}
	}
	return nil
}

// CheckMember reports whether the specification has the region of a member. It must, if it has that of others by their
// numbers.
func (s *Spec) CheckMember(name string) error {
	if len(s.regions) == 0 || s.Region(name) != "" {
		return nil
	}
	return &Error{Spec: s.String(), Part: "regions=" + strings.Join(s.regions, "+"),
		Detail: "the name of member " + strconv.Quote(name) + " ends in no number, so it has none of these regions: add " +
			name + ":region=" + s.regions[0] + ", for example"}
}

// String writes the specification as Parse reads it.
func (s *Spec) String() string {
	var parts []string
	first := s.all.text()
	if len(s.regions) > 0 {
		first = append(first, "regions="+strings.Join(s.regions, "+"))
	}
	if len(first) > 0 {
		parts = append(parts, strings.Join(first, ","))
	}
	for i := range s.members {
		m := &s.members[i]
		text := m.text()
		if m.region != "" {
			text = append(text, "region="+m.region)
		}
		parts = append(parts, m.who.text+":"+strings.Join(text, ","))
	}
	for i := range s.pairs {
		p := &s.pairs[i]
		arrow := ">"
		if p.both {
			arrow = "~"
		}
		parts = append(parts, p.from.text+arrow+p.to.text+":"+strings.Join(p.text(), ","))
	}
	return strings.Join(parts, ";")
}

// text formats what is set.
func (s *settings) text() (out []string) {
	add := func(what setting, key, value string) {
		if s.has&what != 0 {
			out = append(out, key+"="+value)
		}
	}
	add(hasLatency, "latency", s.link.Latency.String())
	add(hasJitter, "jitter", s.link.Jitter.String())
	add(hasEgress, "bandwidth", formatRate(max(1, s.cards.Egress)))
	add(hasLoss, "loss", strconv.FormatFloat(s.link.Loss, 'f', -1, 64)+"%")
	add(hasCards, "nics", strconv.Itoa(s.cards.Number))
	return out
}
