package netspec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Error describes what is wrong with a specification, and in which part of it. Nothing was started.
type Error struct{ Spec, Part, Detail string }

func (e *Error) Error() string {
	text := fmt.Sprintf("link emulation %q: ", e.Spec)
	if e.Part != "" && e.Part != e.Spec {
		text += fmt.Sprintf("%q: ", e.Part)
	}
	return text + e.Detail
}

// Usage is the flag --net in short.
const Usage = `emulate links between members: latency=5ms,jitter=0.1ms,bandwidth=250mbit,loss=0.1%; ` +
	`regions=us-east-1+eu-west-1+ap-northeast-1 puts member i into the i-th; ` +
	`parts after ";" are exceptions, as 1~2:latency=40ms; @FILE reads it from a file ` +
	`(docs/using/operations.md, "Emulated links")`

// Parse reads a specification: see the package. Rates are in bit, kbit, mbit, gbit (per second, with
// powers of 1000) or B/s, kB/s, MB/s, GB/s; egress is another name for bandwidth. What follows a # is
// a comment, up to the end of the line. The empty string is no emulation. An error is an *Error.
func Parse(text string) (Spec, error) {
	var p parser
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for part := range strings.SplitSeq(line, ";") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			if err := p.part(part); err != nil {
				return Spec{}, &Error{strings.TrimSpace(text), part, err.Error()}
			}
		}
	}
	p.resolve()
	if err := p.check(); err != nil {
		return Spec{}, &Error{Spec: strings.TrimSpace(text), Detail: err.Error()}
	}
	return p.spec, nil
}

type parser struct{ spec Spec }

// part reads one part.
func (p *parser) part(text string) error {
	who, rest, named := strings.Cut(text, ":")
	if !named {
		return p.everybody(text)
	}
	who = strings.TrimSpace(who)
	if from, to, ok := strings.Cut(who, "~"); ok {
		return p.pair(from, to, true, rest)
	}
	if from, to, ok := strings.Cut(who, ">"); ok {
		return p.pair(from, to, false, rest)
	}
	return p.member(who, rest)
}

// all members read a part about all links and members.
func (p *parser) everybody(text string) error {
	r := reader{may: hasLatency | hasJitter | hasLoss | hasEgress | hasCards | hasRegions, what: "a part about all links"}
	r.settings = p.spec.all
	if err := r.read(text); err != nil {
		return err
	}
	p.spec.all = r.settings
	if r.regions != nil {
		p.spec.regions = r.regions
	}
	return nil
}

// member reads a part about one member, or those of a region.
func (p *parser) member(who, text string) error {
	s, err := parseSelector(who)
	if err != nil {
		return err
	}
	if s.kind == anybody {
		return fmt.Errorf("leave %q out to say it of all members", who+":")
	}
	r := reader{may: hasEgress | hasRegion, what: "a part about one member"}
	if err := r.read(text); err != nil {
		return err
	}
	p.spec.members = append(p.spec.members, memberPart{s, r.settings, r.region})
	return nil
}

// pair reads a part about a pair.
func (p *parser) pair(from, to string, both bool, text string) error {
	a, err := parseSelector(from)
	if err != nil {
		return err
	}
	b, err := parseSelector(to)
	if err != nil {
		return err
	}
	r := reader{may: hasLatency | hasJitter | hasLoss, what: "a part about a pair", oneWay: !both}
	if err := r.read(text); err != nil {
		return err
	}
	p.spec.pairs = append(p.spec.pairs, pairPart{a, b, both, r.settings})
	return nil
}

// parseSelector parses the members that a part is about. Which names are those of regions is found out when all parts
// are read.
func parseSelector(text string) (selector, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return selector{}, fmt.Errorf("it does not say whom it is about: a member's number or name, a region, or *")
	case text == "*":
		return selector{text, anybody}, nil
	case strings.ContainsAny(text, "~>+,= \t"):
		return selector{}, fmt.Errorf("%q is no member's number or name, no region, and not *", text)
	case strings.Trim(text, "0123456789") != "":
		return selector{text, byName}, nil
	}
	number := numberOf(text)
	if number == "" {
		return selector{}, fmt.Errorf("%s is no member's number: they have up to %d digits", text, maxNumber)
	}
	return selector{number, byNumber}, nil
}

// reader reads the settings of a part.
type reader struct {
	settings
	region  string
	regions []string

	may    setting // what such a part can set
	what   string  // such a part
	oneWay bool
}

// named is a setting and what it is called.
type named struct {
	key  string
	what setting
}

// names of settings, in the order in which they are listed.
var names = []named{
	{"latency", hasLatency}, {"rtt", hasLatency}, {"jitter", hasJitter}, {"bandwidth", hasEgress}, {"egress", hasEgress},
	{"loss", hasLoss}, {"nics", hasCards}, {"region", hasRegion}, {"regions", hasRegions},
}

func (r *reader) read(text string) error {
	for field := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(field, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if !ok || value == "" {
			return fmt.Errorf("%q is not of the form key=value", strings.TrimSpace(field))
		}
		i := slices.IndexFunc(names, func(n named) bool { return n.key == key })
		switch {
		case i < 0 || r.may&names[i].what == 0:
			return fmt.Errorf("%s: unknown; known are %s in %s", key, r.known(), r.what)
		case r.has&names[i].what != 0:
			return fmt.Errorf("%s is given twice", key)
		}
		r.has |= names[i].what
		if err := r.set(key, value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return r.checkRanges()
}

// known lists what such a part can set.
func (r *reader) known() string {
	var out []string
	for _, n := range names {
		if r.may&n.what != 0 {
			out = append(out, n.key)
		}
	}
	return strings.Join(out, ", ")
}

func (r *reader) set(key, value string) (err error) {
	switch key {
	case "latency":
		r.link.Latency, err = time.ParseDuration(value)
	case "rtt":
		if r.oneWay {
			return fmt.Errorf("a round trip goes both ways: give the latency of this one, or write ~ in place of >")
		}
		r.link.Latency, err = time.ParseDuration(value)
		r.link.Latency /= 2
	case "jitter":
		r.link.Jitter, err = time.ParseDuration(value)
	case "bandwidth", "egress":
		r.cards.Egress, err = parseRate(value)
	case "loss":
		number, percent := strings.CutSuffix(value, "%")
		if r.link.Loss, err = strconv.ParseFloat(number, 64); err == nil && !percent && r.link.Loss != 0 {
			err = fmt.Errorf("%q lacks the %% sign", value)
		}
	case "nics":
		if r.cards.Number, err = strconv.Atoi(value); err == nil && r.cards.Number < 1 {
			err = fmt.Errorf("%d is not a number of network cards", r.cards.Number)
		}
	case "region":
		r.region = value
		err = checkRegionName(value)
	case "regions":
		for name := range strings.SplitSeq(value, "+") {
			name = strings.TrimSpace(name)
			if err := checkRegionName(name); err != nil {
				return err
			}
			r.regions = append(r.regions, name)
		}
	}
	return err
}

func checkRegionName(name string) error {
	if s, err := parseSelector(name); err != nil || s.kind != byName {
		return fmt.Errorf("%q cannot be the name of a region", name)
	}
	return nil
}

// checkRanges reports values that make no sense.
func (s *settings) checkRanges() error {
	l, c := &s.link, &s.cards
	switch {
	case l.Latency < 0 || l.Jitter < 0 || l.Latency > time.Minute || l.Jitter > time.Minute:
		return fmt.Errorf("latency %v, jitter %v: must be within 0 and 1m", l.Latency, l.Jitter)
	case c.Egress < 0 || c.Egress > 0 && c.Egress < 1000:
		return fmt.Errorf("bandwidth of %d bit/s: must be at least 1kbit", c.Egress)
	case !(l.Loss >= 0 && l.Loss <= cutLoss):
		return fmt.Errorf("loss of %v%%: must be within 0 and %d", l.Loss, cutLoss)
	case c.Number < 0 || c.Number > 1024:
		return fmt.Errorf("%d network cards: must be within 1 and 1024", c.Number)
	}
	return nil
}

// resolve finds out which names are those of regions, and puts those parts last that count most.
func (p *parser) resolve() {
	s := &p.spec
	used := s.used()
	turn := func(who *selector) {
		if who.kind == byName && (builtIn(who.text) || slices.Contains(used, who.text)) {
			who.kind = inRegion
		}
	}
	for i := range s.members {
		turn(&s.members[i].who)
	}
	for i := range s.pairs {
		turn(&s.pairs[i].from)
		turn(&s.pairs[i].to)
	}
	slices.SortStableFunc(s.pairs, func(a, b pairPart) int {
		return cmp.Compare(a.from.rank()+a.to.rank(), b.from.rank()+b.to.rank())
	})
}

// check reports what the parts together leave open or set twice.
func (p *parser) check() error {
	s := &p.spec
	if s.all.has&hasLatency != 0 && len(s.regions) > 0 {
		return fmt.Errorf("regions say the latency of all links, and so does latency=%s: leave one of them out",
			s.all.link.Latency)
	}
	for i := range s.members {
		if m := &s.members[i]; m.who.kind == inRegion && m.region != "" {
			return fmt.Errorf("%q: %s is a region: a region is in no other", m.who.text+":region="+m.region, m.who.text)
		}
	}
	used := s.used()
	for _, a := range used {
		for _, b := range used {
			if err := p.checkTrip(a, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkTrip reports whether the latency from one region to another one is known.
func (p *parser) checkTrip(a, b string) error {
	if a == b && builtIn(a) {
		return nil
	}
	if _, ok := roundTrips()[[2]string{a, b}]; ok {
		return nil
	}
	told := false // of a
	for i := range p.spec.pairs {
		q := &p.spec.pairs[i]
		if q.has&hasLatency == 0 || q.from.kind != inRegion || q.to.kind != inRegion {
			continue
		}
		told = told || q.from.text == a || q.to.text == a
		if q.from.text == a && q.to.text == b || q.both && q.from.text == b && q.to.text == a {
			return nil
		}
	}
	switch {
	case !told && !builtIn(a):
		return fmt.Errorf("region %q is not known: known are %s; for a region of your own say how far it is from the "+
			"others, as in %s~%s:rtt=80ms",
			a, strings.Join(Regions(), ", "), a, cmp.Or(p.another(a), "us-east-1"))
	case a != b:
		return fmt.Errorf("how far region %q is from %q is not known: say it, as in %s~%s:rtt=80ms", a, b, a, b)
	}
	return nil
}

// another is a region that is used alongside one.
func (p *parser) another(region string) string {
	for _, r := range p.spec.used() {
		if r != region {
			return r
		}
	}
	return ""
}
