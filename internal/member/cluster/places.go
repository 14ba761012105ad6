package cluster

import (
	"slices"
	"time"
)

// places are where a member may be found. They come from the membership, from what this member was given at its
// start, and from the member itself over a link. None of them is certain: the membership may be older than a move,
// what was given may be an old command line, and what a member says of itself may come from one. So they are tried
// one after the other, and the handshake proves who answers. The first ones that answer stay in use. It is a pure
// rule; not safe for concurrent use.
type places struct {
	listed, given, told []string // each one URL per network card; nil: not known
	// newer: the membership has changed the member's URLs since this member started.
	newer bool

	use      []string // the URLs that are dialed, which are one of the lists above; nil: none is known
	answered []string // those at which it answered last
	up       bool     // it has a link
	misses   int      // how often it did not answer since these URLs are in use
	turns    int      // how often others were used since turned
	turned   time.Duration
}

// candidates lists the places in order of preference. What the member says comes first, because it is newest. What
// was given is newer than a membership from before the start. It is older than one that changed since.
func (p *places) candidates() (all [][]string) {
	order := [3][]string{p.told, p.given, p.listed}
	if p.newer {
		order = [3][]string{p.listed, p.told, p.given}
	}
	for _, urls := range order {
		if len(urls) > 0 && !slices.ContainsFunc(all, func(o []string) bool { return slices.Equal(o, urls) }) {
			all = append(all, urls)
		}
	}
	return all
}

// prefer puts the first candidate in use.
func (p *places) prefer() {
	if all := p.candidates(); len(all) > 0 {
		p.put(all[0])
	}
}

// put puts URLs in use. It reports whether others were.
func (p *places) put(urls []string) bool {
	if slices.Equal(p.use, urls) {
		return false
	}
	p.use, p.misses = urls, 0
	return true
}

func (p *places) add(urls []string) {
	p.given = urls
	p.prefer()
}

// follow takes in what the membership says. If that has changed since the start, it refutes what was given.
func (p *places) follow(urls []string) {
	old := p.listed
	if len(urls) == 0 || slices.Equal(old, urls) {
		return
	}
	p.listed = urls
	if old != nil {
		p.newer, p.given, p.turns = true, nil, 0
		p.prefer()
	} else if p.use == nil {
		p.prefer()
	}
}

// maxTold is how many URLs a member may say that it has. Each is dialed before others are, so many would hide it.
const maxTold = 16

// learn notes the URLs that the member sent. A working link is kept. It reports whether other URLs are in use now.
func (p *places) learn(urls []string) bool {
	if len(urls) == 0 || len(urls) > maxTold || slices.Equal(p.told, urls) && p.up {
		return false
	}
	p.told = urls
	if p.up && p.inUse() {
		return false
	}
	p.turns = 0
	return p.put(urls)
}

// miss takes in that the member did not answer. Once it has not at any of its URLs, the next candidate is used. When
// all were tried, this begins again no sooner than retry after it began.
func (p *places) miss(now, retry time.Duration) bool {
	p.misses++
	all := p.candidates()
	if p.up || p.misses < len(p.use) || len(all) < 2 {
		return false
	}
	if p.turns == 0 || now-p.turned >= retry {
		p.turns, p.turned = 0, now
	}
	if p.turns == len(all)-1 {
		return false
	}
	p.turns++
	i := slices.IndexFunc(all, func(urls []string) bool { return slices.Equal(urls, p.use) })
	return p.put(all[(i+1)%len(all)])
}

// answer takes in that the member answered at the URLs in use. If these are not what was given, that is refuted.
// It reports whether they are news.
func (p *places) answer() (news bool) {
	p.up, p.misses, p.turns = true, 0, 0
	if !slices.Equal(p.use, p.given) {
		p.given = nil
	}
	known := p.answered
	if known == nil {
		known = p.listed
	}
	news = known != nil && !slices.Equal(known, p.use)
	p.answered = p.use
	return news
}

// inUse reports whether the URLs in use are one of the candidates.
func (p *places) inUse() bool {
	return len(p.use) == 0 || slices.ContainsFunc(p.candidates(), func(urls []string) bool {
		return slices.Equal(urls, p.use)
	})
}
