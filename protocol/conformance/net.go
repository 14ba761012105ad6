package conformance

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Factory starts a core, in a new incarnation of a member, from what its disk holds.
type Factory func(self protocol.Session, rec protocol.Recovered) (protocol.Core, error)

// Net is a cluster in memory. Nothing happens in it by itself: tests step members, deliver messages and complete
// writes one by one, or use Settle.
type Net struct {
	t     testing.TB
	codec *protocol.Codec
	start Factory
	rng   *rand.Rand
	// Nodes are sorted by id, those that were started at any time.
	Nodes []*Node
	// Queue is what is in progress, oldest first.
	Queue []Parcel
	// Cut reports whether the link between two members is down; nil: all are up.
	Cut func(from, to protocol.MemberID) bool
	// Trace, if set, gets a line for every event.
	Trace func(line string)
	// Lag keeps writes pending until Sync is called; otherwise Settle completes them.
	Lag bool
	Options
	judge judge
	// first has the successive configurations of the first instance, if this one follows it.
	first []protocol.Config
}

// Parcel is a message in progress, a snapshot (Base set), or a member's request for a whole body, which is fetched
// when it is delivered.
type Parcel struct {
	From, To protocol.MemberID
	Message  *protocol.Message
	Term     protocol.Term
	Base     *protocol.Base
	Want     *protocol.BodyRef
	asked    bool // the sender's core asked for the snapshot, and gets its result
}

// Node is one member.
type Node struct {
	ID   protocol.MemberID
	Core protocol.Core // nil: crashed
	// incarnations is the number of starts.
	incarnations uint64
	// Now is the member's own clock.
	Now time.Duration
	// Applied is the last index that was committed here and its term; Config is the
	// configuration there.
	Applied protocol.Index
	term    protocol.Term
	Config  protocol.Config
	// Snap is the newest durable snapshot that is in use.
	Snap protocol.Base

	derived protocol.Derived // as of Applied; nil: to be restored from Snap, or there is none
	eff     protocol.Effects
	wakeAt  time.Duration      // the time of the core's next Wake; 0: none
	disk    protocol.Recovered // what is durable
	writes  []write            // pending, oldest first
	offered []protocol.Base    // received snapshots, durable but perhaps not in use
	bodies  map[protocol.Index]held
	lacks   []protocol.Index // committed entries whose bodies are missing
	maxK    uint8            // of all committed bodies
	told    protocol.Bodies  // as the core knows them
	// places are the numbers of commands of each key that were executed, up to Applied. took are all that were, in any
	// incarnation.
	places []int
	took   map[protocol.ProposalID]bool
	// closed: a verdict said that a seal counts. judged is the last seal that does not count.
	closed bool
	judged protocol.Index
}

// write has one step's records, and the messages that wait for them.
type write struct {
	seq     uint64
	records []protocol.Record
	release []*protocol.Message
}

// NewNet starts a cluster of voters 1 … n, whose cores send messages of a codec.
func NewNet(t testing.TB, n int, seed uint64, codec *protocol.Codec, start Factory) *Net {
	return newNet(t, n, seed, codec, start, nil)
}

// newNet does so with the zones of the first members.
func newNet(t testing.TB, n int, seed uint64, codec *protocol.Codec, start Factory, zones []string) *Net {
	net := &Net{t: t, codec: codec, start: start, rng: rand.New(rand.NewPCG(seed, 99))}
	net.judge.init(t)
	var c protocol.Config
	for id := 1; id <= n; id++ {
		c.Members = append(c.Members, protocol.Member{ID: protocol.MemberID(id)})
	}
	for i := range zones {
		c.Members[i].Zone = zones[i]
	}
	c.Number()
	net.judge.config = c
	for id := 1; id <= n; id++ {
		net.Add(protocol.MemberID(id), c)
	}
	return net
}

// Add starts a new member: with the cluster's first configuration, or with none if it joins.
func (net *Net) Add(id protocol.MemberID, c protocol.Config) *Node {
	n := &Node{ID: id, Config: c, Snap: protocol.Base{Config: c}, bodies: map[protocol.Index]held{},
		took: map[protocol.ProposalID]bool{}}
	n.disk.Base = n.Snap
	net.Nodes = append(net.Nodes, n)
	slices.SortFunc(net.Nodes, func(a, b *Node) int { return int(a.ID) - int(b.ID) })
	net.boot(n)
	return n
}

func (net *Net) boot(n *Node) {
	n.incarnations++
	core, err := net.start(protocol.NewSession(n.ID, protocol.LogID{}, n.incarnations, true), n.recovered())
	if err != nil {
		net.t.Fatalf("member %s does not start: %v", n.ID, err)
	}
	n.Core = core
	n.Applied, n.term, n.Config = n.Snap.Index, n.Snap.Term, n.Snap.Config
	n.eff, n.wakeAt, n.derived, n.closed, n.judged = protocol.Effects{}, 0, nil, false, 0
	net.judge.startKeyed(n, &n.Snap)
	net.inspectBodies(n)
}

// recovered is the state on a member's disk: a snapshot, the entries after it, and cells. Payloads of every other
// batch are left on disk.
func (n *Node) recovered() protocol.Recovered {
	rec := protocol.Recovered{State: n.disk.State, Base: n.Snap, Cells: slices.Clone(n.disk.Cells)}
	for i, e := range n.disk.Entries {
		if e.Index == n.Snap.Index && e.Term != n.Snap.Term {
			// The log after the snapshot did not reach the disk: the entries there are void.
			n.cutBodies(e.Index, n.disk.Entries[len(n.disk.Entries)-1].Index)
			n.disk.Entries = slices.Clip(n.disk.Entries[:i])
			break
		}
	}
	for _, e := range n.disk.Entries {
		if e.Index <= n.Snap.Index {
			continue
		}
		if e.Kind.Commands() && e.Index%2 == 0 {
			e.Payload = nil
		}
		e.Form, e.Body = n.form(&e), nil
		rec.Entries = append(rec.Entries, e)
	}
	return rec
}

// Node returns a member.
func (net *Net) Node(id protocol.MemberID) *Node {
	for _, n := range net.Nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}

// Step passes an input to a member and carries out its effects.
func (net *Net) Step(id protocol.MemberID, in protocol.Input) {
	net.StepLazily(id, in)
	net.CarryOut(id)
}

// StepLazily passes an input to a member; its effects wait for CarryOut.
func (net *Net) StepLazily(id protocol.MemberID, in protocol.Input) {
	n := net.Node(id)
	if n.Core == nil {
		return
	}
	n.eff.WakeAt = 0
	n.Core.Step(n.Now, in, &n.eff)
	n.wakeAt = n.eff.WakeAt
	if err := n.Core.Check(); err != nil {
		net.t.Fatalf("after %T: %v", in, err)
	}
}

// CarryOut carries out a member's effects.
func (net *Net) CarryOut(id protocol.MemberID) {
	n := net.Node(id)
	if n.Core == nil {
		return
	}
	e := &n.eff
	net.traceEffects(n)
	before := net.judge.highest
	config := net.judge.config.Members
	net.judge.effects(n, e)
	net.judge.seals(n, e, net.codec)
	if len(net.first) > 0 && len(config) > 0 && &config[0] != &net.judge.config.Members[0] {
		net.judge.followed(&net.judge.config, net.first)
	}
	if e.Install != nil {
		n.Applied, n.term, n.Config = e.Install.Index, e.Install.Term, e.Install.Config
		n.derived = nil
		net.derive(n, e.Install)
	}
	for i := range e.Commit {
		net.apply(n, e.Commit[i])
	}
	net.judge.judgeReads()
	if e.Install != nil {
		net.inspectBodies(n)
	}
	net.commitsBodies(n, e.Commit)
	given := len(e.Commit)
	net.reportBodies(n)
	net.takeMore(n, e.Commit[given:])
	if net.judge.highest > before {
		c := n.Core.Status().Config
		// If a configuration becomes active at one moment, some of this was decided under the earlier one.
		net.checkBodies(before+1, &c, !net.OneVoter)
	}
	if len(e.Persist) > 0 || len(e.Release) > 0 {
		n.writes = append(n.writes, write{e.Seq, slices.Clone(e.Persist), slices.Clone(e.Release)})
	}
	send := slices.Clone(e.Send)
	ask, wants := slices.Clone(e.Snapshots), slices.Clone(e.Want)
	e.Reset()
	for _, m := range send {
		net.send(n, m)
	}
	for _, to := range ask {
		net.sendSnapshot(n, to)
	}
	for _, ref := range wants {
		net.want(n, ref)
	}
	// Messages that wait for no write need no disk.
	for len(n.writes) > 0 && len(n.writes[0].records) == 0 {
		net.complete(n)
	}
}

// takeMore takes the entries that a member commits when it learns the state of its bodies.
func (net *Net) takeMore(n *Node, entries []protocol.Entry) {
	for i := range entries {
		net.judge.committed(n, &entries[i], n.Applied+1)
		net.apply(n, entries[i])
	}
	net.commitsBodies(n, entries)
}

func (net *Net) apply(n *Node, e protocol.Entry) {
	if e.Index <= n.Applied {
		return // void: before an installed snapshot
	}
	if d := net.derive(n, &n.Snap); d != nil {
		if !e.Applicable() {
			e.Payload = net.payload(n, &e)
		}
		d.Apply(&e)
	}
	n.Applied, n.term = e.Index, e.Term
	if e.Kind == protocol.EntryConfig {
		c, err := protocol.DecodeConfig(e.Payload)
		if err != nil {
			net.t.Fatalf("member %s: committed configuration at %d: %v", n.ID, e.Index, err)
		}
		n.Config = c
	}
}

// derive returns a member's derived state. If there is none yet, it continues from a base.
func (net *Net) derive(n *Node, from *protocol.Base) protocol.Derived {
	if n.derived == nil && net.Derive != nil {
		n.derived = net.Derive(from.Config)
		if err := from.Restore(n.derived); err != nil {
			net.t.Fatalf("member %s: %v", n.ID, err)
		}
	}
	return n.derived
}

// send puts a message in flight as bytes, like a transport.
func (net *Net) send(n *Node, m *protocol.Message) {
	b := m.AppendHead(nil)
	for i := range m.Entries {
		e := net.dressed(n, m.Entries[i], m.Entries[i].Index <= m.Commit)
		b = append(append(b, e.Head()...), e.Payload...)
		if e.BodySize > 0 {
			b = append(e.AppendBodyHead(b), e.Body...)
		}
	}
	b = m.AppendHoldings(b)
	decoded, err := protocol.DecodeMessage(b, net.codec)
	if err != nil {
		net.t.Fatalf("member %s sends %s: %v", n.ID, net.codec.Name(m.Type), err)
	}
	decoded.Lazy, decoded.Aside = m.Lazy, m.Aside // a link knows them, so scripts may show them
	net.Queue = append(net.Queue, Parcel{From: n.ID, To: m.To, Message: decoded})
}

// payload reads a payload that is not resident from the member's own log.
func (net *Net) payload(n *Node, e *protocol.Entry) []byte {
	for _, d := range n.disk.Entries {
		if d.Index == e.Index && d.Term == e.Term {
			return d.Payload
		}
	}
	net.t.Fatalf("member %s: payload of %d/%d is neither resident nor durable", n.ID, e.Index, e.Term)
	return nil
}

func (net *Net) sendSnapshot(n *Node, to protocol.MemberID) {
	if n.Snap.Index == 0 {
		n.Snap = net.base(n)
	}
	base := n.Snap
	if net.Keyed > 0 { // the current one: an earlier state may not have all of the receiver's commands
		base = net.base(n)
	}
	net.Queue = append(net.Queue, Parcel{From: n.ID, To: to, Term: n.Core.Status().Term, Base: &base, asked: true})
}

// base is the base of a snapshot of a member's applied state.
func (net *Net) base(n *Node) protocol.Base {
	b := protocol.Base{Index: n.Applied, Term: n.term, Config: n.Config}
	net.judge.covered(n.Applied)
	if net.Merged {
		b.Round = net.judge.rounds[n.Applied]
	}
	if d := net.derive(n, &n.Snap); d != nil && b.Index > 0 {
		b.Section = d.Section()
	}
	if net.Keyed > 0 && b.Index > 0 {
		net.judge.keyed.snapshots[placeOf(&b)] = slices.Clone(n.places)
	}
	return b
}

// Gift puts a snapshot of another instance in flight: it covers this one's entries too.
func (net *Net) Gift(from, to protocol.MemberID) {
	if n := net.Node(from); n.Core != nil && n.Applied > 0 {
		base := net.base(n)
		net.Queue = append(net.Queue, Parcel{From: from, To: to, Base: &base})
	}
}

// Deliver removes the i-th parcel from the queue and delivers it.
func (net *Net) Deliver(i int) {
	p := net.take(i)
	to := net.Node(p.To)
	if to == nil || to.Core == nil || net.Cut != nil && net.Cut(p.From, p.To) {
		net.lose(p)
		return
	}
	if p.Want != nil {
		net.bring(to, *p.Want)
		return
	}
	net.traceParcel("", p)
	if p.Base == nil {
		net.Step(p.To, p.Message)
		return
	}
	to.offered = append(to.offered, *p.Base)
	net.Step(p.To, protocol.SnapshotReceived{From: p.From, Term: p.Term, Base: *p.Base})
	if p.asked {
		net.Step(p.From, protocol.SnapshotSent{To: p.To, Index: p.Base.Index})
	}
}

// Drop loses the i-th parcel.
func (net *Net) Drop(i int) { net.lose(net.take(i)) }

func (net *Net) take(i int) Parcel {
	p := net.Queue[i]
	net.Queue = slices.Delete(net.Queue, i, i+1)
	return p
}

func (net *Net) lose(p Parcel) {
	net.traceParcel("lost ", p)
	if p.asked && net.Node(p.From).Core != nil {
		net.Step(p.From, protocol.SnapshotSent{To: p.To})
	}
}

// Sync completes all writes of a member.
func (net *Net) Sync(id protocol.MemberID) {
	n := net.Node(id)
	for len(n.writes) > 0 {
		net.complete(n)
	}
}

// SyncOne completes a member's oldest write.
func (net *Net) SyncOne(id protocol.MemberID) {
	if n := net.Node(id); len(n.writes) > 0 {
		net.complete(n)
	}
}

func (net *Net) complete(n *Node) {
	w := n.writes[0]
	n.writes = n.writes[1:]
	for i := range w.records {
		n.store(&w.records[i])
	}
	for _, m := range w.release {
		net.send(n, m)
	}
	if n.Core != nil {
		net.Step(n.ID, protocol.Persisted{Seq: w.seq})
	}
}

func (n *Node) store(r *protocol.Record) {
	d := &n.disk
	switch r.Kind {
	case protocol.RecordState:
		d.State = r.State
	case protocol.RecordBase:
		if k := len(d.Entries); k > 0 {
			n.cutBodies(r.Base.Index+1, d.Entries[k-1].Index)
		}
		d.Base, d.Entries = *r.Base, nil
		for _, o := range n.offered {
			if o.Index == r.Base.Index && o.Round == r.Base.Round {
				n.Snap = o // the record activates it
			}
		}
	case protocol.RecordBody:
		n.storeBody(&r.Entry)
	case protocol.RecordCell, protocol.RecordDrop:
		n.storeBody(&r.Entry)
		n.storeCell(r)
	case protocol.RecordEntry:
		if k := len(d.Entries); k > 0 {
			n.cutBodies(r.Entry.Index, d.Entries[k-1].Index)
		}
		n.storeBody(&r.Entry)
		i, _ := slices.BinarySearchFunc(d.Entries, r.Entry.Index, func(e protocol.Entry, i protocol.Index) int {
			return int(e.Index) - int(i)
		})
		d.Entries = append(slices.Clip(d.Entries[:i]), r.Entry)
	}
}

// storeCell writes or empties a cell.
func (n *Node) storeCell(r *protocol.Record) {
	cells, cell := n.disk.Cells, protocol.Cell{Number: r.Cell.Number, Data: r.Cell.Bytes()}
	i, found := slices.BinarySearchFunc(cells, r.Cell.Number, func(c protocol.Cell, number uint64) int {
		return cmp.Compare(c.Number, number)
	})
	switch {
	case r.Kind == protocol.RecordDrop && found:
		n.disk.Cells = slices.Delete(cells, i, i+1)
	case r.Kind == protocol.RecordDrop:
	case found:
		cells[i] = cell
	default:
		n.disk.Cells = slices.Insert(cells, i, cell)
	}
}

// Compact makes a durable snapshot of a member and truncates its log, except for keep entries.
func (net *Net) Compact(id protocol.MemberID, keep protocol.Index) {
	n := net.Node(id)
	if n.Core == nil || n.Applied <= n.Snap.Index {
		return
	}
	n.Snap = net.base(n)
	if n.Applied > keep {
		net.Step(id, protocol.Compact{Index: n.Applied - keep})
	}
}

// Crash stops a member. Of its pending writes the first keep ones survive, and perhaps a part of the next one.
func (net *Net) Crash(id protocol.MemberID, keep int) {
	n := net.Node(id)
	n.Core = nil
	for i := range n.writes {
		whole := len(n.writes[i].records)
		if i == keep && net.Torn {
			whole = net.rng.IntN(whole + 1)
		} else if i >= keep {
			break
		}
		for k := range whole {
			n.store(&n.writes[i].records[k])
		}
	}
	n.writes, n.offered = nil, nil
	net.judge.crashed(n)
	net.tracef("%s crashes", id)
}

// Restart starts a crashed member from its disk.
func (net *Net) Restart(id protocol.MemberID) {
	net.tracef("%s restarts", id)
	net.boot(net.Node(id))
}

// Tick advances a member's clock and sends a Tick. If the core wants an earlier Wake, it gets it.
func (net *Net) Tick(id protocol.MemberID, d time.Duration) {
	n := net.Node(id)
	until := n.Now + d
	for wakes := 0; n.Core != nil && n.wakeAt > 0 && n.wakeAt <= until; wakes++ {
		if wakes == mostWakes {
			net.t.Fatalf("member %s wants to be woken again and again: now at %s, it is %s", n.ID, n.wakeAt, n.Now)
		}
		n.Now = max(n.Now, n.wakeAt)
		net.tracef("%s is woken", id)
		net.Step(id, protocol.Wake{})
	}
	n.Now = until
	t := protocol.Tick{Random: net.rng.Uint64()}
	if net.Merged {
		t.Applied = n.Applied
	}
	net.Step(id, t)
	if net.Seals && net.rng.IntN(8) == 0 {
		net.verdicts(n)
	}
}

// mostWakes bounds the Wakes of a core between two ticks.
const mostWakes = 1000

// Settle delivers and completes until nothing is in progress.
func (net *Net) Settle() {
	for range 100_000 {
		switch {
		case len(net.Queue) > 0:
			net.Deliver(0)
		case net.Lag || !net.syncAny():
			return
		}
	}
	net.t.Fatalf("the cluster does not come to rest")
}

func (net *Net) syncAny() bool {
	for _, n := range net.Nodes {
		if len(n.writes) > 0 {
			net.Sync(n.ID)
			return true
		}
	}
	return false
}

// Leader returns the member that leads in the highest term, nil if none does.
func (net *Net) Leader() *Node {
	var best *Node
	var term protocol.Term
	for _, n := range net.Nodes {
		if n.Core == nil {
			continue
		}
		if s := n.Core.Status(); s.Role == protocol.Leader && (best == nil || s.Term > term) {
			best, term = n, s.Term
		}
	}
	return best
}
