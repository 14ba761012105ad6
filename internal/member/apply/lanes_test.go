package apply

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// TestAcceptedCommandsOutliveTheirIncarnation searches all runs of a small model: one member brings commands by its
// lane in the first of two merged instances, and others by the second one. It crashes, and restarts as the next
// incarnation.
// The order and the sessions are real. Whatever was accepted takes effect (docs/internals/lcr.md, "Several instances").
func TestAcceptedCommandsOutliveTheirIncarnation(t *testing.T) {
	t.Parallel()
	states, err := (&laneSearch{rule: owesApplied}).run()
	require.NoError(t, err)
	t.Log(states, "states")
	for rule, name := range map[owesRule]string{
		owesNothing: "a new incarnation ends earlier ones at once",
		owesHeld:    "it waits only for what it holds of their lanes",
		owesLogged:  "it waits until that is committed in the first instance",
	} {
		_, err := (&laneSearch{rule: rule}).run()
		require.Error(t, err, name)
	}
}

// owesRule says when the batches of a new incarnation end the earlier ones, if the second instance takes them.
type owesRule int

const (
	owesNothing owesRule = iota
	owesHeld
	owesLogged
	owesApplied // the real one
)

// laneItem is an entry: a group of one batch of the lane ('g'), a batch ('b'), the entry that opens a lane ('o'), or a
// skip ('s').
type laneItem struct {
	kind      byte
	life, seq byte
	replaces  bool // Low says that earlier incarnations are over
}

// laneItems is a list of items that can be compared.
type laneItems string

func (l laneItems) at(i int) laneItem {
	return laneItem{kind: l[4*i], life: l[4*i+1], seq: l[4*i+2], replaces: l[4*i+3] == 1}
}

func (l laneItems) len() int { return len(l) / 4 }

func (l laneItems) with(it laneItem) laneItems {
	b := byte(0)
	if it.replaces {
		b = 1
	}
	return l + laneItems([]byte{it.kind, it.life, it.seq, b})
}

func (l laneItems) without(i int) laneItems { return l[:4*i] + l[4*i+4:] }

func (l laneItems) has(it laneItem) bool {
	for i := range l.len() {
		if o := l.at(i); o.kind == it.kind && o.life == it.life && o.seq == it.seq {
			return true
		}
	}
	return false
}

// laneState is a state of the model.
type laneState struct {
	logs [2]laneItems // what is committed in the instances
	// lane is what others hold of lanes, memory what the member holds, and disk what its disk holds of that.
	lane, memory, disk laneItems
	away               laneItems // on the way to the second instance
	accepted           laneItems
	life, seq          byte
	// has is how much of the first log is on the member's disk. knows is how much of both it knows to be committed.
	has   int
	knows [2]int
	// last is the last group of an earlier incarnation that it found in the first log.
	last    int
	over    bool
	brought int
	other   int
}

const (
	mostBrought = 1 // batches by lanes
	mostOther   = 1 // batches by the second instance
	mostLives   = 2
	mostEntries = 4 // of a log
)

type laneSearch struct {
	rule owesRule
	seen map[laneState]bool
	todo []laneState
}

func (q *laneSearch) run() (states int, err error) {
	q.seen = map[laneState]bool{}
	q.add(laneState{life: 1, logs: [2]laneItems{laneItems("").with(laneItem{kind: 'o', life: 1})}})
	for len(q.todo) > 0 {
		s := q.todo[len(q.todo)-1]
		q.todo = q.todo[:len(q.todo)-1]
		if err := s.judge(); err != nil {
			return len(q.seen), err
		}
		q.member(s)
		q.logs(s)
	}
	return len(q.seen), nil
}

func (q *laneSearch) add(s laneState) {
	if s.look(q.rule); !q.seen[s] {
		q.seen[s] = true
		q.todo = append(q.todo, s)
	}
}

// look lets the member see whether earlier incarnations are over.
func (s *laneState) look(rule owesRule) {
	held := false
	for i := range s.disk.len() {
		held = held || s.disk.at(i).life < s.life
	}
	switch rule {
	case owesNothing:
		s.over = true
	case owesHeld:
		s.over = s.over || !held
	case owesLogged:
		s.over = s.over || !held && s.knows[0] >= s.last
	case owesApplied:
		s.over = s.over || !held && s.applied() >= s.last
	}
}

// applied is how far the member has applied the first log.
func (s *laneState) applied() int {
	if s.last == 0 {
		return 0
	}
	o := order.New(order.Begin(2, true))
	for i, n := range s.knows {
		o.Add(protocol.InstanceID(i+1), entriesOf(s.logs[i], n))
	}
	o.Next(nil)
	at := o.Cursor()
	return int(at.Point(1).Index)
}

// member adds what the member can do.
func (q *laneSearch) member(s laneState) {
	own := laneItem{kind: 'g', life: s.life, seq: s.seq + 1}
	if n := s; s.brought < mostBrought && s.logs[0][:4*s.knows[0]].has(laneItem{kind: 'o', life: s.life}) {
		n.brought, n.seq = n.brought+1, n.seq+1
		n.memory, n.lane = n.memory.with(own), n.lane.with(own)
		q.add(n)
	}
	if n := s; s.other < mostOther {
		n.other, n.seq = n.other+1, n.seq+1
		n.away = n.away.with(laneItem{kind: 'b', life: s.life, seq: n.seq, replaces: s.over})
		q.add(n)
	}
	if n := s; s.memory.len() > 0 { // the disk has it
		n.disk, n.memory = n.disk.with(n.memory.at(0)), n.memory.without(0)
		q.add(n)
	}
	for i := range s.disk.len() {
		if it := s.disk.at(i); it.life == s.life && !s.accepted.has(it) {
			n := s
			n.accepted = n.accepted.with(it)
			q.add(n)
			break
		}
	}
	if n := s; n.has < n.logs[0].len() {
		n.has++
		q.add(n)
	}
	if n := s; n.knows[0] < n.has {
		n.learn()
		q.add(n)
	}
	if n := s; n.knows[1] < n.logs[1].len() {
		n.knows[1]++
		q.add(n)
	}
	if n := s; n.life < mostLives {
		n.crash()
		q.add(n)
	}
}

// learn is when the member learns that the next entry of the first log is committed. It gives up what it holds of that.
func (s *laneState) learn() {
	it := s.logs[0].at(s.knows[0])
	s.knows[0]++
	if it.kind != 'g' {
		return
	}
	for _, held := range []*laneItems{&s.disk, &s.memory} {
		for i := range held.len() {
			if *held != "" && held.at(i) == it {
				*held = held.without(i)
				break
			}
		}
	}
	if it.life < s.life {
		s.last = max(s.last, s.knows[0])
	}
}

// crash begins the next incarnation. What the disk says of the commit index, and the state, may be old.
func (s *laneState) crash() {
	s.life, s.seq, s.memory, s.knows, s.over, s.last = s.life+1, 0, "", [2]int{}, false, 0
	for i := range s.has {
		if it := s.logs[0].at(i); it.kind == 'g' && it.life < s.life {
			s.last = i + 1
		}
	}
}

// logs adds what the instances can commit.
func (q *laneSearch) logs(s laneState) {
	open := byte(0)
	for i := range s.logs[0].len() {
		if it := s.logs[0].at(i); it.kind == 'o' {
			open = it.life
		}
	}
	room := [2]bool{s.logs[0].len() < mostEntries, s.logs[1].len() < mostEntries}
	drained := true
	for i := range s.disk.len() {
		drained = drained && (s.disk.at(i).life != open || s.logs[0].has(s.disk.at(i)))
	}
	if n := s; room[0] && open < s.life && drained {
		n.logs[0] = n.logs[0].with(laneItem{kind: 'o', life: s.life})
		q.add(n)
	}
	for i := range s.lane.len() {
		if it := s.lane.at(i); room[0] && it.life == open { // the first one that is left
			n := s
			n.logs[0], n.lane = n.logs[0].with(it), n.lane.without(i)
			q.add(n)
			break
		}
	}
	for i := range s.away.len() {
		if n := s; room[1] {
			n.logs[1], n.away = n.logs[1].with(s.away.at(i)), n.away.without(i)
			q.add(n)
		}
	}
	for i := range s.logs {
		if n := s; room[i] && rounds(s.logs[i]) == 0 { // a skip later than that shows nothing new
			n.logs[i] = n.logs[i].with(laneItem{kind: 's', seq: byte(rounds(s.logs[i]) + 1)})
			q.add(n)
		}
	}
}

func rounds(l laneItems) (n int) {
	for i := range l.len() {
		if l.at(i).kind != 'o' {
			n++
		}
	}
	return n
}

// judge applies the global log as far as it is committed.
func (s *laneState) judge() error {
	o, sessions := order.New(order.Begin(2, true)), NewSessions(nil)
	for i, l := range s.logs {
		o.Add(protocol.InstanceID(i+1), entriesOf(l, l.len()))
	}
	for _, p := range o.Next(nil) {
		if p.Entry.Count == 0 || sessions.Admit(p.Instance, &p.Entry) {
			continue
		}
		it := laneItem{kind: 'g', life: byte(p.Entry.ID.Session.Number()), seq: byte(p.Entry.ID.Seq)}
		if p.Instance == 1 && s.accepted.has(it) {
			return fmt.Errorf("an accepted command is refused: %s", s)
		}
	}
	return nil
}

func (s *laneState) String() string {
	var b strings.Builder
	for _, l := range s.logs {
		for i := range l.len() {
			it := l.at(i)
			fmt.Fprintf(&b, " %c%d.%d", it.kind, it.life, it.seq)
		}
		b.WriteString(";")
	}
	return b.String()
}

// entriesOf are the first n items as entries.
func entriesOf(l laneItems, n int) (all []protocol.Entry) {
	for i := range n {
		it := l.at(i)
		session := protocol.NewSession(7, protocol.LogID{}, uint64(it.life), true)
		e := protocol.Entry{Kind: protocol.EntryBatch, Count: 1, Low: 1}
		e.ID = protocol.ProposalID{Session: session, Seq: uint64(it.seq)}
		switch it.kind {
		case 'o':
			e = protocol.NewLane(session)
		case 's':
			e = protocol.NewSkip(protocol.Round(it.seq))
		case 'b':
			if !it.replaces {
				e.Low = 0
			}
		}
		e.Index = protocol.Index(i + 1)
		all = append(all, e)
	}
	return all
}
