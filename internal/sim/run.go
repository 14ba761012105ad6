package sim

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/sim/world"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

var fullFlights = count.New("times_that_bytes_in_flight_were_at_their_limit", "bytes in flight at their limit")

// Options says which world to run.
type Options struct {
	Seed  uint64
	Nodes int // voters at the beginning, 1 … 9
	// Protocol is one of the registry's ("": raft). Placement is where it puts values ("": the
	// protocol's own).
	Protocol, Placement string
	// Order is how instances make one log ("": the protocol's own). Instances is how many there
	// are.
	Order     string
	Instances int
	// Own are the protocol's own settings.
	Own setting.Values
	// Mutant is a rule that is broken on purpose; "": none.
	Mutant string
	// Net says how long the way between members is, as the flag --net; "": the seed draws it.
	Net string
	// Without turns off kinds of faults (see FaultKinds), to find out which ones matter.
	Without []string
	// Trace, if set, receives the whole conversation.
	Trace io.Writer
	// pointless, if set, is asked now and then whether the run still matters to anybody. If not, it is abandoned.
	pointless func() bool
}

// Result is the outcome of a run.
type Result struct {
	Seed       uint64
	Hash       uint64 // equal for equal runs
	Steps      int
	Messages   int
	Operations int           // that clients began
	Acked      int           // writes that were acknowledged
	Virtual    time.Duration // simulated time
	Events     count.Counts  // what happened, and how often
	// Violation is nil if everything was as it must be.
	Violation *world.Violation
	// abandoned: the run ended early, because it did not matter any more.
	abandoned bool
}

// linkFaults turns off what links do to single messages. It is a kind of fault for Options.Without.
const linkFaults = "links"

// Run runs one simulated cluster: first with faults, then without them. Then it judges the end.
func Run(o Options) (res Result) {
	w := open(o)
	defer func() {
		p := recover()
		_, pointless := p.(world.Abandoned)
		if p != nil && !pointless {
			w.Violate(0, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
		res = w.result()
		res.abandoned = pointless
	}()
	w.Pointless = o.pointless
	w.begin()
	w.Run(w.set.Chaos)
	w.recover()
	return res
}

// open makes the world that the options describe.
func open(o Options) *World {
	rng := run.Of(o.Seed).Rand
	set := drawSettings(&o, rng)
	for _, name := range o.Without {
		if name == linkFaults {
			set.perfectLinks()
		}
		delete(set.Faults, faultNamed(name))
	}
	var t *world.Trace
	if o.Trace != nil {
		t = world.NewTrace(o.Trace)
		t.Line("seed %d: %s", o.Seed, &set)
	}
	return newWorld(set, rng, t)
}

// begin starts members, clients and faults.
func (w *World) begin() {
	w.beginBorn()
	w.beginNamesakes()
	for _, m := range w.members {
		m.setRate(w.wrongRate())
		m.offset = time.Duration(w.Pick(1 << 40))
		w.startLater(m, w.Between(0, w.set.Election))
	}
	w.openClients()
	w.openFaults()
	w.beginApart()
}

func (w *World) result() Result {
	r := Result{Seed: w.set.Seed, Hash: w.Hash, Steps: w.Steps, Messages: w.messages, Operations: len(w.history.Ops),
		Acked: w.history.Acked, Virtual: w.Now(), Events: w.Events, Violation: w.Broken}
	if w.Out != nil {
		if w.Broken != nil {
			w.Out.Line("VIOLATION %v", w.Broken)
		}
		if err := w.Out.Flush(); err != nil && w.Broken == nil {
			r.Violation = &world.Violation{Seed: w.set.Seed, Err: err}
		}
	}
	return r
}

// recover is the second phase. Faults end, enough members live, and then there must be progress. At
// the end everything is judged.
func (w *World) recover() {
	if w.Broken != nil {
		return
	}
	alive := w.calmDown()
	w.demandRepairs(alive)
	w.demandProgress(alive, true)
	w.demandMerging(alive)
	if w.Broken == nil && w.Chance(0.4) {
		w.restartSome(alive)
		w.demandProgress(alive, w.Chance(0.5))
	}
	w.demandDepartures(alive)
	w.demandSameState(alive)
	w.demandPace(alive)
	w.demandBusyPace(alive)
	w.awaitTidy(alive)
	w.demandSameState(alive) // what a client gave up may have been accepted meanwhile
	if w.Broken == nil {
		w.Violate(0, w.finalVerdict(alive))
	}
}

// demandSameState waits until all members have applied the last writes, also those of clients that
// gave up.
func (w *World) demandSameState(alive []*Member) {
	same := func() bool {
		return !slices.ContainsFunc(w.serving(alive), (*Member).behind) && w.history.JudgeTold() == nil // something may just have been accepted
	}
	if !w.RunUntil(w.Now()+w.settleTime(), same) && w.Broken == nil {
		w.Violate(0, fmt.Errorf("not everybody applies the last writes:%s", w.describeMembers(alive)))
	}
}

// restartSome lets some or all members lose power while no client writes.
func (w *World) restartSome(alive []*Member) {
	all := w.Chance(0.5)
	for _, m := range alive {
		if all || w.Chance(0.5) {
			w.Tracef("FAULT %s loses power once more", m.id)
			m.crash()
			w.startLater(m, w.Between(0, w.set.Election))
		}
	}
}

// calmDown ends all faults and returns the members that live in the second phase.
func (w *World) calmDown() []*Member {
	w.calm = true
	w.pass = nil
	w.set.perfectLinks()
	w.set.timely()
	w.healFaults()
	for _, m := range w.members {
		w.rectify(m)
		w.endApart(m)
		if m.misled {
			w.leaveOther(m)
		}
	}
	alive := w.core()
	for _, m := range w.members {
		m.own.timely()
		if !slices.Contains(alive, m) {
			m.crash()
			m.gone = true
		}
	}
	w.Tracef("CALM: %s live", ids(alive))
	for _, m := range alive {
		if m.frozen {
			m.thaw()
		}
		if m.up && (m.writer.steps.Stats().Failed != nil || m.astray > 0) {
			m.crash() // nobody has noticed yet that its disk failed, or that its state is of another log
		}
		w.startMember(m)
	}
	return alive
}

func ids(members []*Member) string {
	text := ""
	for i, m := range members {
		text += mark(i > 0, ", ") + m.id.String()
	}
	return text
}

// demandProgress gives the living members a bounded time. In it each of them must complete a write
// (if asked for) and a read, and reach the same state.
func (w *World) demandProgress(alive []*Member, writes bool) {
	probes := make(map[*Member]*probe)
	for _, m := range alive {
		p := &probe{client: client{w: w, number: w.set.Clients + int(m.id), home: m.id}, m: m}
		probes[m] = p
		if writes {
			w.After(0, p.write)
		} else {
			w.After(0, p.read)
		}
	}
	limit := w.Now() + w.settleTime()
	done := w.RunUntil(limit, func() bool {
		for _, m := range w.serving(alive) {
			if !probes[m].done || m.behind() || m.lacks() {
				return false
			}
		}
		return len(w.serving(alive)) > 0 && !w.waitsToVote(alive) && w.history.JudgeTold() == nil // what was just accepted is still to take effect
	})
	if !done && w.Broken == nil {
		w.Violate(0, fmt.Errorf("no progress %s after the last fault:%s", w.settleTime(), w.describeMembers(alive)))
	}
}

// settleTime is how long recovery may take: some elections, and the time to send, write and apply
// the whole log again in the smallest pieces.
func (w *World) settleTime() time.Duration {
	s := &w.set
	piece := s.pieceTime()
	timeout := 80*s.Election + 100*piece + w.epochTime(piece)
	if s.byKey() {
		timeout += time.Duration(len(w.history.Ops)) * piece // each may have left an undecided command, which is recovered by itself
	}
	for _, c := range w.court.All {
		timeout += time.Duration(c.Ledger.Decided()) * piece
		if s.Bodies.Share > 0 {
			timeout += time.Duration(len(c.Bodies.Live())+20) * s.gatherTime()
		}
		if s.Bodies.Share > 0 && s.Bodies.GatherBytes <= int64(s.Bodies.Max) {
			// One body is gathered at a time. A member that comes back with an old snapshot looks for
			// bodies that nobody has any more, and gives up on each before the next.
			timeout += time.Duration(c.Ledger.Decided()) * s.bodyTimeout()
		}
	}
	return timeout
}

// serving returns the living members that must make progress: those in the last configuration that
// any of them has applied.
func (w *World) serving(alive []*Member) []*Member {
	var last *Member
	for _, m := range alive {
		if m.up && (last == nil || m.reached() > last.reached()) {
			last = m
		}
	}
	if last == nil {
		return nil
	}
	configs := last.applier.Configs()
	if configs[0].Joint() || !last.settled() && !w.lacksMember(&configs[0]) && !slices.ContainsFunc(alive, (*Member).owes) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(alive), func(m *Member) bool {
		return slices.ContainsFunc(configs, func(c protocol.Config) bool { return c.Find(m.id) == nil })
	})
}

// waitsToVote reports whether a member that was added as a voter runs and is not a voter yet,
// although nothing prevents it.
func (w *World) waitsToVote(alive []*Member) bool {
	for _, m := range w.serving(alive) {
		for _, c := range m.applier.Configs() {
			if slices.ContainsFunc(c.Members, func(x protocol.Member) bool { return x.Joining && w.member(x.ID).up && !w.member(x.ID).owes() }) {
				return true
			}
		}
	}
	return false
}

// owes reports whether bodies are missing on the member, or held in part where it is to hold them
// whole. Other code judges that the bodies to which its state refers arrive. Some others may exist on no
// member any more: the state dropped them, and others have a snapshot that says so. The member forgets
// these with its next snapshot, and without writes there may be none. Until then an instance may wait
// with a change of its members.
func (m *Member) owes() bool {
	return m.up && m.body.kept.Lacking()+m.body.kept.Short() > 0
}

// lacksMember reports whether some member of a configuration is down. Instances may wait for it
// before they follow the membership of the first.
func (w *World) lacksMember(c *protocol.Config) bool {
	return slices.ContainsFunc(c.Members, func(m protocol.Member) bool { return !w.member(m.ID).up })
}

func (m *Member) behind() bool {
	if !m.up || m.sick() || m.w.set.woven() && m.gap() != "" {
		return true
	}
	if m.machines.Behind(m.w.set.Keys) {
		return true
	}
	return slices.ContainsFunc(m.inForce, func(s *memberInstance) bool { return uint64(m.applier.Added(s.instance)) < s.judges.Ledger.Decided() })
}

func (w *World) describeMembers(members []*Member) string {
	text := ""
	for _, m := range members {
		if !m.up {
			text += fmt.Sprintf("\n  %s is down", m.id)
			continue
		}
		at := m.applier.Cursor()
		for _, s := range m.inForce {
			st := s.inst.Core().Status()
			text += fmt.Sprintf("\n  %s%s: %s of term %d, leader %s, log %d…%d, durable %d, commit %d, applied %d; members %v outgoing %v",
				m.id, w.named(s.instance), st.Role, st.Term, st.Leader, st.First, st.Last, st.Durable, st.Commit,
				at.Point(s.instance).Index, st.Config.All(), st.Config.Outgoing)
		}
		text += fmt.Sprintf("\n    lacks bodies: %t, instances follow: %t %s", m.lacks(), m.settled(), m.gap())
	}
	return text
}

// probe is a client that repeats one write and then one read, at one member, until they succeed. It
// asks less and less often, so that it does not become the load that it waits for.
type probe struct {
	client
	m     *Member
	tries int
	done  bool
}

func (p *probe) write() { p.try(check.Append, 0, p.read) }

// read reads one key, or all keys where values are kept outside the log.
func (p *probe) read() {
	keys := 1
	if p.w.set.Bodies.Share > 0 {
		keys = p.w.set.Keys
	}
	p.readFrom(0, keys)
}

func (p *probe) readFrom(key, keys int) {
	if key == keys {
		p.done = true
		return
	}
	p.try(check.Get, key, func() { p.readFrom(key+1, keys) })
}

func (p *probe) try(kind check.Kind, key int, then func()) {
	w := p.w
	if !p.m.up {
		w.After(w.set.Heartbeat, func() { p.try(kind, key, then) })
		return
	}
	op := &history.Operation{Operation: check.Operation{Client: p.number, Kind: kind, Key: machine.KeyName(key)}}
	if kind == check.Append {
		op.Value = fmt.Sprintf("%d,", len(w.history.Ops))
		if w.set.Bodies.Share > 0 && w.Chance(0.5) {
			op.Carry(len(w.history.Ops), w.drawBody())
		}
	}
	timeout := w.set.GiveUp + 10*w.set.Election
	if bodies := p.m.machines.First.Bodies(); bodies > 0 {
		timeout += time.Duration(bodies) * w.set.gatherTime()
	}
	p.perform(p.m, op, timeout, func() {
		if w.history.Succeeded(op) {
			then()
			return
		}
		p.tries++
		w.After(w.set.Heartbeat<<min(p.tries, 8), func() { p.try(kind, key, then) })
	})
}

// linearTime bounds, in real time, the search for an order. A run passes if its history cannot be
// decided in that time.
const linearTime = 20 * time.Second

// finalVerdict judges the end. All members have the same state, no acknowledged write is lost, and
// the history has an order.
func (w *World) finalVerdict(alive []*Member) error {
	for _, c := range w.court.All {
		if err := c.Ledger.Retained(); err != nil {
			return err
		}
	}
	var first *Member
	for _, m := range w.serving(alive) {
		if first == nil {
			first = m
		}
		if err := m.machines.Same(&first.machines); err != nil {
			return err
		}
		if err := m.judgeLogSize(); err != nil {
			return err
		}
		if err := m.judgeBodyFiles(); err != nil {
			return err
		}
	}
	if err := w.history.JudgeTold(); err != nil {
		return err
	}
	err := check.Linearizable(w.history.Resolve(), linearTime)
	var undecided *check.UndecidedError
	if errors.As(err, &undecided) {
		return nil
	}
	return err
}

// judgeMember judges what a member holds and does, at each tick.
func (w *World) judgeMember(m *Member) {
	m.cellBytes = max(m.cellBytes, m.log.CellBytes())
	config := m.applier.Config()
	if !config.Joint() && len(config.Removed) > 0 && m.settled() {
		w.retire(config.Removed)
	}
	for _, s := range m.inForce {
		s.judge()
	}
}

func (s *memberInstance) judge() {
	m, w := s.m, s.m.w
	if w.set.woven() && s.ticked {
		w.Violate(m.id, s.inst.Check())
	}
	if !s.leads() || w.set.protocol.Core.Judged.ManyLead || w.set.byKey() { // who leads there follows from the log, and is asked for nothing more
		return
	}
	now := s.inst.Core().Status()
	s.judgePrompt(&now)
	awake := time.Duration(float64(w.Now()-m.still()) * m.rate) // since the process itself last stood still
	if d := min(m.clock()-s.unwritten, awake); s.unwritten != 0 && d > (protocol.StallTimeouts+1)*w.set.Election {
		w.Violate(m.id, fmt.Errorf("it leads instance %d, and its disk has stood still for %s", s.instance, d))
	}
	limit := max(m.own.Core.MaxInflightBytes, m.own.Core.MaxFrameBytes) + maxEntryBytes
	for _, p := range now.Peers {
		if p.InflightBytes >= cmp.Or(m.own.Core.MaxInflightBytes, limit) {
			w.Count(fullFlights)
		}
		if p.InflightBytes > limit {
			w.Violate(m.id, fmt.Errorf("%d bytes are in flight to %s; the limit is %d", p.InflightBytes, p.ID, limit))
		}
	}
}

// judgeLogSize judges that snapshots keep the log short. The log may go back to the snapshot before
// the last one, in whole segments, and have some segments more. What is applied at once lies between
// two snapshots, however much it is.
func (m *Member) judgeLogSize() error {
	s := m.own
	limit := 8*int64(s.SnapshotBytes) + 2*m.between + 2*s.KeepLogBytes + 64*s.SegmentBytes + 8*int64(s.Padding+s.BatchBytes)
	// A compaction moves as many cells as an eighth of what was written since the last one, and the others hold up the
	// log. They may be gone by now, and no compaction came since.
	limit += 8 * max(m.cellBytes, m.log.CellBytes())
	limit *= int64(max(len(m.inForce), s.Instances)) // the logs of retired instances stay
	switch {
	case m.w.set.byKey():
		limit *= 4 // a command stands in a cell when it is preaccepted, when another ballot is promised, when it is decided, and then in the log
	case m.w.set.protocol.Core.Cells.Accepted() != nil:
		limit *= 2 // an entry stands in a cell, and then in the log
	}
	if size := m.log.Size(); size > limit {
		return fmt.Errorf("the log of member %s takes %d bytes; with a snapshot every %d bytes it should be below %d", m.id, size, s.SnapshotBytes, limit)
	}
	return nil
}

// tidyTime is how long it may take at most until the files of bodies are given back that were released.
const tidyTime = time.Second

// awaitTidy lets members release what they soon release, and give back the files. Whether they do is
// judged at the end.
func (w *World) awaitTidy(alive []*Member) {
	w.RunUntil(w.Now()+w.set.Bodies.Release+tidyTime, func() bool {
		return !slices.ContainsFunc(w.serving(alive), func(m *Member) bool { return m.judgeBodyFiles() != nil })
	})
}

// judgeBodyFiles judges that files of bodies that are not needed any more are given back. A file of
// which most is dead is emptied. Some files may be dead for the moment, or hold a damaged body.
func (m *Member) judgeBodyFiles() error {
	store, set := m.body.store, &m.w.set.Bodies
	live, total := store.Size()
	if limit := 3*live + 6*(set.SegmentBytes+int64(set.Max)); total > limit {
		return fmt.Errorf("the bodies of member %s take %d bytes in files of %d; with %d bytes of live ones it should be below %d", m.id, total, set.SegmentBytes, live, limit)
	}
	if n := store.Count(); n > 0 && live == 0 {
		return fmt.Errorf("member %s holds %d bodies in no bytes", m.id, n)
	}
	return nil
}

// maxEntryBytes is the largest entry that clients make: one batch.
const maxEntryBytes = 8 << 20
