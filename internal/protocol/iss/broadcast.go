package iss

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// broadcast is one member's part in a segment of an epoch: Sequenced Broadcast (docs/internals/iss.md). All members
// decide each of its slots: the value that the segment's leader proposed there, or ⊥.
type broadcast struct {
	s         *ISS
	turns     epochs.Segment
	seg       paxos.Segment
	leader    protocol.MemberID
	zeroState zeroState

	acc  paxos.Acceptor
	prop paxos.Proposer
	// decided are the slots that are decided and not in the log yet. nils are all slots that are ⊥, except those in
	// a snapshot.
	decided map[protocol.Index]protocol.Entry
	nils    paxos.Spans
	// upto is the last slot up to which all slots of the segment are decided.
	upto protocol.Index

	durability
	// values are the undecided entries that this member proposes under its ballot.
	values map[protocol.Index]protocol.Entry
	// ownValues are the undecided entries of this incarnation under ballot 0. open is their bytes.
	ownValues map[protocol.Index]protocol.Entry
	open      int
	// never are slots in which the segment's leader proposes nothing, as its promise declares.
	never paxos.Spans
	driving
	// votes are what others report to have accepted. A quorum of them is enough to learn a decision.
	votes witness
	// answers are this member's answers about the segment that are sent with the step, and their places among the
	// messages that wait for the disk. If the first one was sent, all were.
	answers answers
	// gather is what this member gathers as a relay.
	gather relay.Gathering
	// nilled is the number of slots that are known to be ⊥.
	nilled int

	// proposer is the member that proposes, as far as is known; 0: none. heardAt is when its last message arrived,
	// suspectAt when to suspect it.
	proposer           protocol.MemberID
	heardAt, suspectAt time.Duration
	// seen is the highest ballot that others have promised, as they reported.
	seen paxos.Ballot
}

// zeroState is how an incarnation of a segment's leader relates to ballot 0.
type zeroState uint8

const (
	fresh   zeroState = iota // nothing was ever sent under ballot 0
	active                   // this incarnation proposes under it
	retired                  // an earlier incarnation did: this one abstains
)

// durability tracks how much of a segment the disk has.
type durability struct {
	// written is what the disk has once writes are durable, ascending, where it differs from what it had before;
	// held is what it has now.
	written []sbExtent
	held    sbExtent
	// startedAt and promisedAt are the numbers of the writes that began ballot 0, and of the last ballot of this
	// member's own.
	startedAt, promisedAt uint64
}

// driving is a proposer's state of what it sends its peers.
type driving struct {
	// peers are all other members, sorted by id, while this member proposes. heartbeatAt is when the next heartbeat
	// is due.
	peers       []*paxos.Peer
	heartbeatAt time.Duration
	pacing      relay.Pacing
	// covered is what there was to send when the peers were last visited. quiet: all of them were sent it, and they are
	// not visited until something changes.
	//
	//	quiet: every peer is lost, or its Next > covered.end and its CommitSent ≥ covered.upto
	covered driven
	quiet   bool
	// counted is the state at the last count of a quorum.
	//
	//	if the state has not changed, everything that a quorum has is decided, as far as it is proposed
	counted counted
	// frame is the last one that was built during a visit of all peers, of entries up to frameStop.
	frame     paxos.Frame
	frameStop protocol.Index
}

// sbExtent is how far the disk has what was accepted under a ballot, once a write is durable.
type sbExtent struct {
	seq   uint64
	under paxos.Ballot
	reach protocol.Index
}

// newBroadcast starts a member's part in a segment from the log and from cells.
func newBroadcast(s *ISS, leader protocol.MemberID, cells []protocol.Cell) (*broadcast, error) {
	turns, _ := s.epoch.Segment(leader)
	seg := segmentOf(turns)
	b := &broadcast{
		s: s, turns: turns, seg: seg, leader: leader, acc: paxos.NewAcceptor(seg, seg.Before()),
		prop: paxos.Proposer{Seg: seg}, upto: seg.Before(),
		decided: map[protocol.Index]protocol.Entry{}, ownValues: map[protocol.Index]protocol.Entry{},
	}
	b.acc.Ahead = map[protocol.Index]bool{}
	b.catchUp()
	if _, err := b.acc.Load(cells, s.log.Last()); err != nil {
		return nil, err
	}
	b.acc.Reach = b.upto
	b.acc.Extend(b.upto)
	b.held = sbExtent{under: b.acc.Promised, reach: b.acc.Reach}
	if leader == s.cfg.Self && b.acc.Started {
		b.zeroState = retired
	}
	b.resetTimeout()
	return b, nil
}

// catchUp adds the slots that the log has.
func (b *broadcast) catchUp() {
	last := b.s.log.Last()
	for i := b.seg.After(b.upto); i <= last; i = b.seg.After(i) {
		if i > b.s.log.Base {
			if v := b.s.log.At(i); isNil(&v) {
				b.addNil(i)
			}
		}
		b.upto = i
	}
}

func (b *broadcast) addNil(i protocol.Index) { b.nils, b.nilled = b.nils.With(&b.seg, i), b.nilled+1 }

// isNil reports whether an entry is ⊥: nothing is decided in its slot.
func isNil(e *protocol.Entry) bool { return e.Kind == protocol.EntryNoop }

// bottom returns ⊥ in a slot.
func (b *broadcast) bottom(i protocol.Index) protocol.Entry { return b.seal(paxos.Noop(), i) }

// seal sets an entry's slot. Its term is the epoch.
func (b *broadcast) seal(e protocol.Entry, i protocol.Index) protocol.Entry {
	e.Seal(i, protocol.Term(b.s.epoch.Number), make([]byte, protocol.HeadSize))
	return e
}

// segmentOf returns a leader's slots of an epoch as a segment.
func segmentOf(turns epochs.Segment) paxos.Segment {
	return paxos.Segment{Share: turns, First: turns.First(), Last: turns.Last()}
}

// complete reports whether all slots are decided.
func (b *broadcast) complete() bool { return b.upto == b.seg.Last }

// isDecided reports whether a slot is known to be decided.
func (b *broadcast) isDecided(i protocol.Index) bool {
	return i <= b.upto || b.acc.Ahead[i] || i <= b.s.log.Last()
}

// decide records the decision in a slot.
func (b *broadcast) decide(v protocol.Entry) {
	i := v.Index
	if b.isDecided(i) {
		b.compare(&v)
		return
	}
	if v.BodySize > 0 && b.acc.Holds(&v) {
		v.Form = protocol.FormWhole // also if the sender could not read the body
	}
	b.decided[i] = v
	if isNil(&v) {
		b.addNil(i)
	}
	if i == b.seg.After(b.upto) { // the usual case
		b.upto = i
		b.catchAhead()
	} else {
		b.acc.Ahead[i] = true
	}
	b.acc.Extend(b.upto)
	if mine, ok := b.values[i]; ok && !paxos.Same(&mine, &v) {
		b.stepDown()
	}
	delete(b.values, i)
	if b.prop.Phase != paxos.Idle {
		b.prop.Forget(b.upto)
	}
	if m, ok := b.ownValues[i]; ok {
		delete(b.ownValues, i)
		b.open -= m.Bytes()
		if isNil(&v) {
			b.s.returned(m)
		}
	}
	b.s.noteValue(b, &v)
}

// catchAhead advances upto over decided slots after it.
func (b *broadcast) catchAhead() {
	for len(b.acc.Ahead) > 0 {
		next := b.seg.After(b.upto)
		if !b.acc.Ahead[next] {
			return
		}
		b.upto = next
		delete(b.acc.Ahead, next)
	}
}

// compare stops this member if another value is decided here than another member reports.
func (b *broadcast) compare(v *protocol.Entry) {
	if had, ok := b.decided[v.Index]; ok {
		b.s.diverged(slots.Diverges(b.s.cfg.Instance, b.s.from, &had, v))
		return
	}
	b.s.diverged(b.s.log.Diverges(b.s.cfg.Instance, b.s.from, v))
}

// vote accepts an entry under the promised ballot.
func (b *broadcast) vote(v protocol.Entry) {
	stored := b.acc.Unstored(v)
	if v.BodySize > 0 {
		v.Form = protocol.FormWhole
	}
	noted := b.acc.Accept(&v, b.upto)
	b.s.top = max(b.s.top, v.Index) // also for ⊥: at the end of an epoch reads need it (R9)
	b.s.record(protocol.Record{Kind: protocol.RecordCell, Cell: noted.Cell(), Entry: stored})
	b.s.noteValue(b, &v)
}

// writePromise writes the promised ballot, and whether ballot 0 was begun.
func (b *broadcast) writePromise() {
	b.s.record(protocol.Record{Kind: protocol.RecordCell, Cell: b.acc.EncodePromise()})
}

// promiseTo promises a ballot. A proposer under a lower one steps down.
func (b *broadcast) promiseTo(from protocol.MemberID, ballot paxos.Ballot) {
	if ballot <= b.acc.Promised {
		return
	}
	if b.prop.Phase != paxos.Idle {
		b.stepDown()
	}
	b.proposer, b.heardAt = from, b.s.now
	b.acc.Promise(ballot, b.upto)
	b.writePromise()
	b.s.ending = true // the epoch should end soon
}

// stepDown ends this member's proposals. It also steps down when it learns that another value was decided in a slot
// in which it proposed. Other members may have accepted its value, and would learn it as decided from its next
// message.
func (b *broadcast) stepDown() {
	b.prop, b.values, b.peers, b.never = paxos.Proposer{Seg: b.seg}, nil, nil, nil
	b.resetTimeout()
}

// resetTimeout postpones suspicion. The timeout is random, and its range grows with each ballot that did not decide
// everything: where promises take long, members would otherwise preempt each other's ballots without end.
func (b *broadcast) resetTimeout() {
	t := b.s.cfg.ElectionTimeout
	b.suspectAt = b.s.now + t + time.Duration(b.s.chance.Draw()%(uint64(t)<<min(b.acc.Promised.Number(), mostDoubled)))
}

// mostDoubled limits how often the random part of the timeout is doubled.
const mostDoubled = 4

// noteProposer records a message of the member that proposes.
func (b *broadcast) noteProposer(from protocol.MemberID) {
	b.proposer, b.heardAt = from, b.s.now
	if b.prop.Phase == paxos.Idle {
		b.resetTimeout()
	}
}

// wrote records what the disk has once a write is durable.
func (d *durability) wrote(e sbExtent) {
	last := d.held
	if n := len(d.written); n > 0 {
		last = d.written[n-1]
	}
	if last.under != e.under || last.reach != e.reach {
		d.written = append(d.written, e)
	}
}

// completed records that the writes up to a number are durable.
func (d *durability) completed(done uint64) {
	n := 0
	for ; n < len(d.written) && d.written[n].seq <= done; n++ {
		d.held = d.written[n]
	}
	if n > 0 {
		d.written = slices.Delete(d.written, 0, n)
	}
}

// persisted continues after completed writes.
func (b *broadcast) persisted() {
	b.completed(b.s.disk.Done)
	switch b.prop.Phase {
	case paxos.Idle:
		b.learnVoted()
	case paxos.Preparing:
		b.tally()
	case paxos.Ready:
		b.progress()
	}
	b.relayOwn()
}

// stable is the last slot of the segment up to which this member's disk has everything: decided, or accepted under
// the promised ballot.
func (b *broadcast) stable() protocol.Index {
	switch {
	case b.s.disk.Done >= b.s.disk.Written:
		return b.acc.Reach
	case b.held.under == b.acc.Promised:
		return b.held.reach
	}
	return b.seg.Before()
}

// make returns a message with its head. It lists the slots that are ⊥ and that the receiver may not know of.
func (b *broadcast) make(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	p.Segment, p.Upto = b.seg.First, b.upto
	return b.s.make(to, t, p)
}

// send sends a message now.
func (b *broadcast) send(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	m := b.make(to, t, p)
	b.s.out.Send = append(b.s.out.Send, m)
	return m
}

// release sends a message when everything written so far is durable.
func (b *broadcast) release(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	m := b.make(to, t, p)
	b.s.out.Seq = b.s.disk.Touch()
	b.s.out.Release = append(b.s.out.Release, m)
	return m
}

// answer sends an answer when what it reports is durable. early is the mutant that does not wait.
func (b *broadcast) answer(to protocol.MemberID, t protocol.MessageType, p Part,
	early protocol.Mutant) *protocol.Message {
	if b.s.cfg.Mutant == early {
		return b.send(to, t, p)
	}
	return b.release(to, t, p)
}

// skipToBase handles a log that begins after some slots of the segment.
func (b *broadcast) skipToBase() {
	b.catchUp()
	b.catchAhead()
	b.acc.Extend(b.upto)
	if b.prop.Phase != paxos.Idle {
		b.prop.Forget(b.upto)
	}
}
