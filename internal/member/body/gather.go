package body

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// Fragment is a body in some form, with its bytes.
type Fragment struct {
	Form  protocol.Form
	Bytes []byte
}

// GatherRequest asks a Gatherer to make a body whole.
type GatherRequest struct {
	Ref protocol.BodyRef
	// Have is what this member holds and has verified; nil if nothing.
	Have *Fragment
	// Until is when to give up.
	Until time.Duration
	// Urgency is how important the question is. More urgent questions overtake others that wait to
	// begin.
	Urgency Urgency
}

// Urgency is what a body is gathered for.
type Urgency uint8

// What a body is gathered for, the least urgent first. A member that restores bodies which no one has any more must not
// hold up readers. Readers must not hold up a new leader. So each urgency has room of its own.
const (
	ToRestore Urgency = iota
	ToRead
	ToLead
	urgencies
)

// Answer ends a question. It is a whole body that fits its digest, or a *BodyError.
type Answer struct {
	Ref  protocol.BodyRef
	Body []byte
	Err  error
	// Bad are members whose fragments turned out not to be of this body.
	Bad []protocol.MemberID
}

// BodyError says that a body could not be made whole before the question's end: fewer than Need
// good fragments were found. It may work later, when more members can be reached.
type BodyError struct {
	Ref             protocol.BodyRef
	Found, Need     int
	Asked, Answered int // members
	Bad             int // fragments that do not fit the body's digest
	// Waited says that the question never began: others took all the room until its end.
	Waited bool
	// Unread is why this member could not read what it holds of the body; nil: it holds nothing more.
	Unread error
}

func (e *BodyError) Error() string {
	if e.Waited {
		return fmt.Sprintf("braid: body of entry %d (instance %d, %d bytes): nobody was asked, because other bodies were "+
			"gathered until its end",
			e.Ref.Index, e.Ref.Instance, e.Ref.Size)
	}
	return fmt.Sprintf("braid: body of entry %d (instance %d, %d bytes): %d good fragments found, %d needed; %d members "+
		"asked, %d answered, %d wrong fragments",
		e.Ref.Index, e.Ref.Instance, e.Ref.Size, e.Found, e.Need, e.Asked, e.Answered, e.Bad)
}

// Unwrap returns Unread.
func (e *BodyError) Unwrap() error { return e.Unread }

// Certain reports that all members answered, again and again, and together hold too little. Only a
// member that is not part of the cluster now can help, or a repair of a disk.
func (e *BodyError) Certain() bool { return e.Asked > 0 && e.Answered == e.Asked && e.Unread == nil }

// GatherConfig sets up a Gatherer.
type GatherConfig struct {
	Self protocol.MemberID
	// Hedge is after how long all members are asked if there are not enough answers. Retry is
	// after how long those that did not answer are asked again. Large bodies get more time.
	Hedge, Retry time.Duration
	// MaxBytes bounds the bodies of each urgency that are gathered at once. A single one may always
	// be gathered.
	MaxBytes int64
}

const (
	// gatherOpen is how many bodies of each urgency are gathered at once, at most.
	gatherOpen = 64
	// gatherRounds is how often all are asked before a question fails early. When all
	// answered and it is still not enough, more time will hardly help.
	gatherRounds = 4
	// gatherTries is how many subsets of fragments are tried when a fragment arrives.
	gatherTries = 64
)

// GatherOutbox collects what a Gatherer wants. Send may leave at once. Call Unreachable for a
// member that cannot be reached.
type GatherOutbox struct {
	Send    []*protocol.Message
	Answers []Answer
}

// Reset empties the outbox.
func (o *GatherOutbox) Reset() {
	clear(o.Send)
	clear(o.Answers)
	o.Send, o.Answers = o.Send[:0], o.Answers[:0]
}

// Gatherer makes bodies whole. It asks as many members for their fragments as are needed, and soon
// asks more where answers are late. It decodes what comes. Bytes that do not fit the body's digest
// never leave it: when some fragment is wrong, it tries others (docs/internals/craft.md, 2.5). It is a pure
// rule: same calls, same results. Not safe for concurrent use.
type Gatherer struct {
	cfg     GatherConfig
	sources []source
	open    []*gathering
	queue   []*gathering // waiting to begin, the most urgent ones first
	under   [urgencies]underway
	context uint64
}

// underway is what is open of an urgency.
type underway struct {
	bodies int
	bytes  int64
}

// fits reports whether one more body may be gathered.
func (u *underway) fits(size, most int64) bool {
	return u.bodies < gatherOpen && (u.bodies == 0 || u.bytes+size <= most)
}

func (u *underway) add(bodies int, size int64) {
	u.bodies += bodies
	u.bytes += int64(bodies) * size
}

// source is a member that may hold fragments.
type source struct {
	id     protocol.MemberID
	form   protocol.Form // what it holds of coded bodies: its own row, or whole if that is not known
	missed int           // questions since its last answer
	near   bool          // it is in this member's zone
}

// gathering is a question that was not answered yet.
type gathering struct {
	GatherRequest
	context   uint64    // 0: it waits to begin
	room      *underway // what it counts for since it began, however urgent it became later
	asked     []asking
	fragments []piece
	bad       []protocol.MemberID
	failed    int // joins that did not fit the digest
	rounds    int
	extended  bool          // it was given more time; this happens once, so that it ends
	hedge     time.Duration // when to ask all
	round     time.Duration // when this round ends; if paused, when the next one begins
	paused    bool
}

// asking is a member that was asked in this round.
type asking struct {
	id       protocol.MemberID
	form     protocol.Form
	waiting  bool
	answered bool
}

// piece is a fragment and where it came from.
type piece struct {
	from protocol.MemberID
	Fragment
}

// NewGatherer returns a Gatherer that knows no members yet.
func NewGatherer(cfg GatherConfig) *Gatherer { return &Gatherer{cfg: cfg} }

// SetMembers says whom to ask and which row each of them holds.
func (g *Gatherer) SetMembers(c *protocol.Config) {
	old := g.sources
	g.sources = nil
	for _, id := range c.All() {
		if id == g.cfg.Self {
			continue
		}
		s := source{id: id, form: protocol.FormWhole, near: c.Near(g.cfg.Self, id)}
		if m := c.Find(id); m != nil {
			s.form = protocol.RowForm(m.Slot)
		}
		for _, o := range old {
			if o.id == id {
				s.missed = o.missed
			}
		}
		g.sources = append(g.sources, s)
	}
}

// Busy reports whether there is a question. Then Tick must be called.
func (g *Gatherer) Busy() bool { return len(g.open)+len(g.queue) > 0 }

// Ask begins a question, or joins the one about the same body that has begun already. There is one
// Answer for all. Only one that joins can make it last longer: the first that ends later.
func (g *Gatherer) Ask(now time.Duration, q GatherRequest, out *GatherOutbox) {
	if q.Have != nil && q.Have.Form == protocol.FormWhole {
		out.Answers = append(out.Answers, Answer{Ref: q.Ref, Body: q.Have.Bytes})
		return
	}
	if a := g.find(q.Ref); a != nil {
		if !a.extended && q.Until > a.Until {
			a.Until, a.extended = q.Until, true
		}
		if q.Urgency > a.Urgency {
			a.Urgency = q.Urgency
			g.hasten(a)
		}
		return
	}
	a := &gathering{GatherRequest: q}
	if q.Have != nil {
		a.fragments = append(a.fragments, piece{g.cfg.Self, *q.Have})
	}
	g.queue = append(g.queue, a)
	g.hasten(a)
	g.admit(now, out)
}

func (g *Gatherer) find(ref protocol.BodyRef) *gathering {
	for _, list := range [...][]*gathering{g.open, g.queue} {
		for _, a := range list {
			if a.Ref == ref {
				return a
			}
		}
	}
	return nil
}

// hasten moves a waiting question before those that are less urgent.
func (g *Gatherer) hasten(a *gathering) {
	at := slices.Index(g.queue, a)
	if at < 0 {
		return
	}
	g.queue = slices.Delete(g.queue, at, at+1)
	to := slices.IndexFunc(g.queue, func(b *gathering) bool { return b.Urgency < a.Urgency })
	if to < 0 {
		to = len(g.queue)
	}
	g.queue = slices.Insert(g.queue, to, a)
}

// admit begins waiting questions as long as their bodies fit into the bounds.
func (g *Gatherer) admit(now time.Duration, out *GatherOutbox) {
	for len(g.queue) > 0 {
		a := g.queue[0]
		a.room = &g.under[a.Urgency]
		if !a.room.fits(int64(a.Ref.Size), g.cfg.MaxBytes) {
			return
		}
		g.queue = slices.Delete(g.queue, 0, 1)
		g.open = append(g.open, a)
		a.room.add(1, int64(a.Ref.Size))
		g.context++
		a.context = g.context
		g.beginRound(now, a)
		g.proceed(now, a, out)
	}
}

// gatherTimeout is how much longer than a small answer a member may take to send its fragment.
func gatherTimeout(ref *protocol.BodyRef) time.Duration {
	return time.Duration(protocol.FragmentLen(ref.Size, ref.K)) * time.Second / member.SlowestLink
}

func (g *Gatherer) beginRound(now time.Duration, a *gathering) {
	extra := gatherTimeout(&a.Ref)
	a.paused, a.asked = false, nil
	a.hedge = now + g.cfg.Hedge + extra
	a.round = now + (g.cfg.Retry+extra)<<min(a.rounds, gatherRounds)
}

// has reports whether a member's row is here.
func (a *gathering) has(id protocol.MemberID) bool {
	return slices.ContainsFunc(a.fragments, func(p piece) bool { return p.from == id })
}

// need is how many fragments make the body whole.
func (a *gathering) need() int { return max(1, int(a.Ref.K)) }

// distinct is how many distinct ones of them are there.
func (a *gathering) distinct() int {
	n := 0
	for i, p := range a.fragments {
		if !slices.ContainsFunc(a.fragments[:i], func(q piece) bool { return q.Form == p.Form }) {
			n++
		}
	}
	return n
}

// proceed asks further members as far as is sensible. It ends the round when no answer is to come
// any more.
func (g *Gatherer) proceed(now time.Duration, a *gathering, out *GatherOutbox) {
	if a.paused {
		return
	}
	waiting := 0
	for _, s := range a.asked {
		if s.waiting {
			waiting++
		}
	}
	want := a.need() - a.distinct()
	if now >= a.hedge || a.rounds > 0 || a.failed > 0 || len(a.bad) > 0 {
		want = len(g.sources)
	}
	for _, s := range g.candidates(a) {
		if waiting >= want {
			break
		}
		g.ask(a, s, out)
		waiting++
	}
	if waiting == 0 {
		g.endRound(now, a, out)
	}
}

// candidates are the members that were not asked in this round. Those that answered lately come
// first, and of these the ones in this member's zone. For different bodies the list begins with different members.
func (g *Gatherer) candidates(a *gathering) []source {
	var list []source
	for i := range g.sources {
		s := g.sources[(int(a.Ref.Index%protocol.Index(len(g.sources)))+i)%len(g.sources)]
		done := a.rounds == 0 && a.has(s.id) || slices.Contains(a.bad, s.id)
		if !done && !slices.ContainsFunc(a.asked, func(b asking) bool { return b.id == s.id }) {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(x, y source) int {
		return cmp.Or(cmp.Compare(x.missed, y.missed), first(x.near, y.near))
	})
	return list
}

// first orders what is true before what is not.
func first(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// ask asks a member for its row. Once rows did not suffice, it asks for the most that the member
// holds. A member whose row is here already is then asked what it holds, because it may hold the
// whole.
func (g *Gatherer) ask(a *gathering, s source, out *GatherOutbox) {
	form := s.form
	switch {
	case a.has(s.id):
		form = protocol.FormNone
	case a.Ref.K < 2 || a.rounds > 0:
		form = protocol.FormWhole
	}
	a.asked = append(a.asked, asking{id: s.id, form: form, waiting: true})
	g.miss(s.id, 1)
	out.Send = append(out.Send, g.question(a, s.id, form))
}

func (g *Gatherer) question(a *gathering, to protocol.MemberID, form protocol.Form) *protocol.Message {
	return &protocol.Message{
		Type: protocol.MsgFetch, Instance: a.Ref.Instance, From: g.cfg.Self, To: to, Context: a.context,
		Holdings: []protocol.Holding{{Index: a.Ref.Index, Term: a.Ref.Term, Form: form}},
	}
}

// miss counts a question without answer. n = 0 says that the member answered.
func (g *Gatherer) miss(id protocol.MemberID, n int) {
	for i := range g.sources {
		if s := &g.sources[i]; s.id == id {
			s.missed = min(s.missed+n, 8) * n
		}
	}
}

// endRound is called when all were asked and no answer is to come any more.
func (g *Gatherer) endRound(now time.Duration, a *gathering, out *GatherOutbox) {
	a.rounds++
	if a.rounds >= gatherRounds || len(g.sources) == 0 {
		g.fail(a, out)
		return
	}
	a.paused = true
	a.round = now + g.cfg.Hedge<<a.rounds
}

// Receive takes in a MsgFetchResp as decoded from a frame: its Blob is what the other member sent.
// An answer that was not asked for is dropped.
func (g *Gatherer) Receive(now time.Duration, m *protocol.Message, out *GatherOutbox) {
	at := slices.IndexFunc(g.open, func(a *gathering) bool { return a.context == m.Context })
	if m.Type != protocol.MsgFetchResp || at < 0 || len(m.Holdings) != 1 {
		return
	}
	a, h := g.open[at], &m.Holdings[0]
	from := slices.IndexFunc(a.asked, func(s asking) bool { return s.id == m.From })
	if from < 0 || slices.Contains(a.bad, m.From) || h.Index != a.Ref.Index || h.Term != a.Ref.Term {
		return
	}
	asked := &a.asked[from]
	asked.waiting, asked.answered = false, true
	g.miss(m.From, 0)
	_, row := h.Form.Row()
	switch {
	case m.Reject, row && a.has(m.From):
	case asked.form == protocol.FormNone && len(m.Blob) == 0:
		if h.Form == protocol.FormWhole {
			asked.form, asked.waiting = protocol.FormWhole, true
			out.Send = append(out.Send, g.question(a, m.From, protocol.FormWhole))
		}
	default:
		p := piece{m.From, Fragment{h.Form, m.Blob}}
		if body := a.addFragment(p, h.Digest); body != nil {
			g.finish(a, Answer{Ref: a.Ref, Body: body, Bad: a.wrong(body)}, out)
			g.admit(now, out)
			return
		}
	}
	g.proceed(now, a, out)
	g.admit(now, out)
}

// addFragment adds a fragment. It returns the body if this makes it whole.
func (a *gathering) addFragment(p piece, digest uint32) []byte {
	_, row := p.Form.Row()
	switch {
	case p.Form == protocol.FormWhole && len(p.Bytes) == int(a.Ref.Size) && digest == a.Ref.Digest:
		return p.Bytes
	case !row || a.Ref.K < 2 || len(p.Bytes) != protocol.FragmentLen(a.Ref.Size, a.Ref.K):
		a.bad = append(a.bad, p.from)
		return nil
	}
	a.fragments = append(a.fragments, p)
	return a.decode()
}

// Unreachable says that a question to a member was not sent, or that its link broke. The next
// member is asked at once.
func (g *Gatherer) Unreachable(now time.Duration, id protocol.MemberID, out *GatherOutbox) {
	for _, a := range slices.Clone(g.open) {
		for i := range a.asked {
			if s := &a.asked[i]; s.id == id && s.waiting {
				s.waiting = false
				g.proceed(now, a, out)
				break
			}
		}
	}
	g.admit(now, out)
}

// Tick lets time pass: it asks more members, asks again, and gives up.
func (g *Gatherer) Tick(now time.Duration, out *GatherOutbox) {
	for _, a := range slices.Clone(g.open) {
		switch {
		case now >= a.Until:
			g.fail(a, out)
			continue
		case now >= a.round && !a.paused:
			a.rounds++
			fallthrough
		case now >= a.round:
			g.beginRound(now, a)
		}
		g.proceed(now, a, out)
	}
	for _, a := range slices.Clone(g.queue) {
		if now >= a.Until {
			g.fail(a, out)
		}
	}
	g.admit(now, out)
}

func (g *Gatherer) fail(a *gathering, out *GatherOutbox) {
	e := &BodyError{Ref: a.Ref, Found: a.distinct(), Need: a.need(), Asked: len(a.asked), Bad: len(a.bad),
		Waited: a.context == 0}
	for _, s := range a.asked {
		if s.answered {
			e.Answered++
		}
	}
	if e.Found >= e.Need { // enough, but they do not fit each other
		e.Found, e.Bad = e.Need-1, e.Bad+e.Found-e.Need+1
	}
	g.finish(a, Answer{Ref: a.Ref, Err: e, Bad: a.bad}, out)
}

func (g *Gatherer) finish(a *gathering, answer Answer, out *GatherOutbox) {
	if at := slices.Index(g.open, a); at >= 0 {
		g.open = slices.Delete(g.open, at, at+1)
		a.room.add(-1, int64(a.Ref.Size))
	} else if at := slices.Index(g.queue, a); at >= 0 {
		g.queue = slices.Delete(g.queue, at, at+1)
	}
	out.Answers = append(out.Answers, answer)
}

// Check verifies the invariants.
func (g *Gatherer) Check() error {
	var under [urgencies]underway
	for i, a := range g.open {
		for u := range under {
			if a.room == &g.under[u] {
				under[u].add(1, int64(a.Ref.Size))
			}
		}
		if i > 0 && g.open[i-1].context >= a.context || a.distinct() >= a.need() && a.failed == 0 {
			return fmt.Errorf("gatherer: question about entry %d with %d of %d fragments", a.Ref.Index, a.distinct(), a.need())
		}
		for _, p := range a.fragments {
			if len(p.Bytes) != p.Form.Len(a.Ref.Size, a.Ref.K) {
				return fmt.Errorf("gatherer: entry %d: %d bytes as %s", a.Ref.Index, len(p.Bytes), p.Form)
			}
		}
	}
	for u := range under {
		if under[u] != g.under[u] || under[u].bodies > gatherOpen || under[u].bodies > 1 && under[u].bytes > g.cfg.MaxBytes {
			return fmt.Errorf("gatherer: %d bodies of %d bytes of urgency %d under way, says %d of %d, limit %d",
				under[u].bodies, under[u].bytes, u, g.under[u].bodies, g.under[u].bytes, g.cfg.MaxBytes)
		}
	}
	return nil
}
