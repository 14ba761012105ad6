package lifecycle

import (
	"errors"
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// A running cluster can weave its log from more or fewer instances. The first instance's log gets an
// EntryReshape. Where that takes effect in the global log, the order makes a plan: every member begins the
// new instances or retires the last ones. It does so when its order has come there, and does not wait for
// the state machine (see Planner). What new instances commit waits for that (see Applier). A retired
// instance stays for a while, so that members that are a little behind get the rest of its log, and until
// a snapshot says that it is retired. After that they need a snapshot.
//
// A seal ends all instances, and others begin behind it (see order.OpenSeal). A member that has begun those takes no
// part in the old ones: they are closed before the first record of a new one is handed to the log. The first record
// says which instances ended. So a member that starts again with it closes these before anything else, and knows that
// they are decided up to their end.
//
// A start begins with the instances of the newest snapshot. It comes to the plans after it as it did
// before, because the logs have what leads to them. What the log has of an instance that begins later is
// kept until then (Pending).

// Instances are the instances of a member: the active ones, those that are retired and stay for a while, and what the
// log has of those that are not active yet. An I runs an instance. Not safe for concurrent use.
type Instances[I any] struct {
	host InstancesHost[I]
	// ids and inForce are the active instances, ascending by instance. staying are the retired ones, and behind are
	// their ids. No instance is in both lists.
	ids, behind      []protocol.InstanceID
	inForce, staying []I
	// found is what the log had at the start of the active instances. pending is what it has of instances that begin
	// later.
	found   []member.InstanceLog
	pending map[protocol.InstanceID]*Pending
	// cursor is the place of the global log at which these instances are active. since is its position (after a
	// snapshot they may be active since an earlier one); 0: since before this incarnation.
	cursor order.Cursor
	since  protocol.Position
	// sealing is the plan that is to be carried out when the instances in open are closed, which end there; nil: there
	// is none. ended are the instances that had ended before this start.
	sealing *apply.PlannedAt
	open    []protocol.InstanceID
	ended   []protocol.InstanceID
	// first should lead first behind the last seal.
	first protocol.MemberID
	// beginning counts the Submits that are not durable yet; ≥ 0.
	beginning int
	early     earlyMessages
	// Dropped counts the messages that no instance was there for.
	Dropped uint64

	Mutant mutant.Name // weave-forget-pending, seal-begin-unclosed, seal-ends-unnamed, seal-unanswered
}

// InstancesHost is what Instances asks of the member around it.
type InstancesHost[I any] interface {
	// Make makes what runs an instance. It does not run yet.
	Make(log member.InstanceLog) (I, error)
	// Grow makes durable that the log has several instances, see [datadir.Opened.Grow].
	Grow() error
	// Submit hands records to the log. Begun is to be called when they are durable, and then Apply is
	// to be told.
	Submit(records []wal.Record)
	// Known makes known which instances are active, since which position, and which retired ones stay. The lists do not
	// change any more.
	Known(since protocol.Position, ids []protocol.InstanceID, inForce, staying []I)
	// First is the member that leads an instance, which a seal is about to end: see [instance.First].
	First(I) protocol.MemberID
	// Close ends the member's part in an instance. [Instances.Closed] is to be called when everything was sent that the
	// member said before.
	Close(I)
	// Run lets an instance run that begins in a running member, with a tick in its first turn. Retire has it retire, in
	// a turn of its own: see Hosted.Retire.
	Run(I)
	Retire(I)
	// Deliver hands an instance that does not run yet a message, which its core decodes.
	Deliver(I, protocol.Frame)
	// Kept is called with a change of what is known of bodies.
	Kept(func(*body.Kept))
}

// FoundInstances is what a member's log had of its instances when it started.
type FoundInstances struct {
	// InForce are the active ones. pending is what the log has of instances that begin later.
	InForce []member.InstanceLog
	pending map[protocol.InstanceID]*Pending
	retired []protocol.InstanceID // those of which the log still knows something
	ended   []protocol.InstanceID // those whose successors have begun, although the snapshot does not say so
	cursor  order.Cursor
}

// FindInstances reads from a member's log what its instances need to start after its newest
// snapshot. It gives up the logs of instances that are retired there: the member stopped before it
// did, or got a snapshot from after the retirement.
func FindInstances(log *wal.Log, meta *member.Meta) (*FoundInstances, error) {
	f := &FoundInstances{pending: map[protocol.InstanceID]*Pending{}, cursor: meta.Cursor.Clone()}
	for _, id := range meta.Cursor.Instances() {
		rec, err := Recover(log, id, *meta)
		if err != nil {
			return nil, err
		}
		rec.Follows = len(f.InForce) > 0
		f.InForce = append(f.InForce, member.InstanceLog{Instance: id, Recovered: &rec, Place: len(f.InForce)})
	}
	if meta.Cursor.Keyed {
		return f, nil
	}
	for _, w := range log.Instances() {
		id := protocol.InstanceID(w)
		if id < meta.Cursor.Unused() {
			continue
		}
		u, err := RecoverPending(log, id)
		if err != nil {
			return nil, err
		}
		f.pending[id] = u
	}
	f.end()
	for _, id := range log.Instances() {
		if !meta.Cursor.Retired(protocol.InstanceID(id)) {
			continue
		}
		f.retired = append(f.retired, protocol.InstanceID(id))
		if err := log.Compact(id, uint64(member.AllIndexes)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// end takes in what the first records of instances say about those that ended before them: these are decided up to
// there, as far as the log has them.
func (f *FoundInstances) end() {
	for _, u := range f.pending { // any order: an instance ends once
		for _, e := range u.logBase.Ended {
			f.ended = append(f.ended, e.Instance)
			if rec := f.of(e.Instance); rec != nil {
				rec.State.Commit = max(rec.State.Commit, min(e.Index, rec.Base.Index+protocol.Index(len(rec.Entries))))
			}
		}
	}
	for i := range f.InForce {
		f.InForce[i].Closed = slices.Contains(f.ended, f.InForce[i].Instance)
	}
}

func (f *FoundInstances) of(id protocol.InstanceID) *protocol.Recovered {
	for i := range f.InForce {
		if f.InForce[i].Instance == id {
			return f.InForce[i].Recovered
		}
	}
	if u := f.pending[id]; u != nil {
		return &u.Recovered
	}
	return nil
}

// Retired lists the retired instances of which the log still knows something.
func (f *FoundInstances) Retired() []protocol.InstanceID { return f.retired }

// Forget removes from the log what it still knows of retired instances, if the oldest snapshot on the disk says that
// they are retired. Before that, a start may have to go back to a snapshot in which they are active, because the newer
// one is damaged. Such a start must find out that their logs are given up. Otherwise the member would break its word as
// a voter.
func (f *FoundInstances) Forget(log *wal.Log, oldest *order.Cursor) error {
	for _, id := range f.retired {
		if !oldest.Retired(id) {
			continue
		}
		if err := log.Remove(uint32(id)); errors.As(err, new(*wal.FullError)) {
			return nil // the next start tries again
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Logs is all that the log had: of the active instances, then of those that begin later.
func (f *FoundInstances) Logs() []member.InstanceLog {
	logs := slices.Clone(f.InForce)
	var later []protocol.InstanceID
	for id := range f.pending { // any order: they are sorted
		later = append(later, id)
	}
	slices.Sort(later)
	for _, id := range later {
		logs = append(logs, member.InstanceLog{Instance: id, Recovered: &f.pending[id].Recovered})
	}
	return logs
}

// NewInstances returns the instances that a log had. Start makes them.
func NewInstances[I any](found *FoundInstances) *Instances[I] {
	return &Instances[I]{found: found.InForce, pending: found.pending, ended: found.ended, cursor: found.cursor}
}

// Start makes the active instances. They do not run yet.
func (n *Instances[I]) Start(host InstancesHost[I]) error {
	n.host = host
	for _, log := range n.found {
		i, err := host.Make(log)
		if err != nil {
			return err
		}
		n.ids, n.inForce = append(n.ids, log.Instance), append(n.inForce, i)
	}
	n.known()
	return nil
}

func (n *Instances[I]) known() { n.host.Known(n.since, n.ids, n.inForce, n.staying) }

// Carry carries out a plan: it begins and retires instances. It does nothing if the instances are from that place in
// the log, or from a later one. changed says that other instances are active now. The beginnings of new ones are on
// their way to the log then. Their own records come behind these, because they run only then. Where all instances end,
// they are closed first, and Closed carries the plan out.
func (n *Instances[I]) Carry(p *apply.PlannedAt) (changed bool, err error) {
	shape := p.At.Instances()
	switch {
	case !n.cursor.Before(&p.At) || slices.Equal(shape, n.ids):
		return false, nil
	case n.sealing != nil:
		if n.sealing.At.Before(&p.At) {
			n.sealing = p
		}
		return false, nil
	case slices.Contains(shape, n.ids[0]):
		return true, n.carry(p, false)
	}
	n.first = n.host.First(n.inForce[0])
	if n.Mutant == member.MutantBeginUnclosed {
		return true, n.carry(p, true)
	}
	n.sealing, n.open = p, n.ids
	for _, i := range n.inForce {
		n.host.Close(i)
	}
	return false, nil
}

// Closed says that an instance is closed: see [InstancesHost.Close]. p is the plan that is carried out now; nil: none.
func (n *Instances[I]) Closed(id protocol.InstanceID) (p *apply.PlannedAt, err error) {
	if n.sealing == nil || !slices.Contains(n.open, id) {
		return nil, nil
	}
	n.open = slices.DeleteFunc(slices.Clone(n.open), func(o protocol.InstanceID) bool { return o == id })
	if len(n.open) > 0 {
		return nil, nil
	}
	p, n.sealing = n.sealing, nil
	return p, n.carry(p, true)
}

// carry carries out a plan whose instances are others than the active ones. sealed: none of these stays active.
func (n *Instances[I]) carry(p *apply.PlannedAt, sealed bool) error {
	shape := p.At.Instances()
	var all, born, retired []I
	var ids, ended []protocol.InstanceID
	var records []wal.Record
	for _, id := range shape {
		if at := slices.Index(n.ids, id); at >= 0 {
			all = append(all, n.inForce[at])
			continue
		}
		base := p.Meta.Base(id)
		if sealed && n.Mutant != member.MutantEndsUnnamed {
			base.Ended = n.endedBy(p)
		}
		i, beginning, err := n.begin(base, id, p, sealed)
		if err != nil {
			return err
		}
		all, born, ids, records = append(all, i), append(born, i), append(ids, id), append(records, beginning...)
	}
	for at, id := range n.ids {
		if !slices.Contains(shape, id) {
			retired, ended = append(retired, n.inForce[at]), append(ended, id)
		}
	}
	if len(records) > 0 {
		if err := n.host.Grow(); err != nil {
			return err
		}
		n.beginning++
		n.host.Submit(records)
	}
	n.ids, n.inForce, n.cursor, n.since = shape, all, p.At.Clone(), p.At.Position
	n.behind, n.staying = slices.Concat(n.behind, ended), slices.Concat(n.staying, retired)
	for at, i := range born {
		n.deliver(ids[at], i) // before what comes from now on
	}
	n.early.forget(&n.cursor)
	n.known()
	for _, i := range born {
		n.host.Run(i)
	}
	n.host.Kept(func(k *body.Kept) { k.Reshaped(shape) })
	for _, i := range retired {
		n.host.Retire(i)
	}
	return nil
}

// endedBy are the active instances, as the first records behind a seal have them. How far they count is not known if a
// snapshot led to the plan.
func (n *Instances[I]) endedBy(p *apply.PlannedAt) (ended []protocol.EndedLog) {
	for _, id := range n.ids {
		e := protocol.EndedLog{Instance: id}
		for _, known := range p.Ended {
			if known.Instance == id {
				e = known
			}
		}
		ended = append(ended, e)
	}
	return ended
}

// Begun says that the records of a Submit are durable.
func (n *Instances[I]) Begun() { n.beginning-- }

// Beginning reports whether the log does not durably have the beginnings of all instances yet.
func (n *Instances[I]) Beginning() bool { return n.beginning > 0 }

// begin makes an instance that begins at a base. The log must have records before the instance's
// own. sealed: it begins behind a seal.
func (n *Instances[I]) begin(
	base protocol.Base, id protocol.InstanceID, p *apply.PlannedAt, sealed bool,
) (i I, records []wal.Record, err error) {
	u := n.pending[id]
	delete(n.pending, id)
	if u == nil || n.Mutant == member.MutantForgetPending {
		u = NewUnborn(id)
	}
	rec, records, err := u.Begin(base)
	if err != nil {
		return i, nil, err
	}
	log := member.InstanceLog{Instance: id, Recovered: &rec, Place: slices.Index(p.At.Instances(), id),
		Closed: slices.Contains(n.ended, id)}
	rec.Follows = log.Place > 0
	if sealed && !u.written && base.Index == 0 {
		log.First = n.first
	}
	if i, err = n.host.Make(log); err != nil {
		return i, nil, err
	}
	n.host.Kept(func(k *body.Kept) { k.Begin(id, &base) })
	return i, records, nil
}

// Drop forgets a retired instance that has stayed long enough: see Hosted.Ended.
func (n *Instances[I]) Drop(id protocol.InstanceID) {
	at := slices.Index(n.behind, id)
	if at < 0 {
		return
	}
	n.behind = slices.Concat(n.behind[:at], n.behind[at+1:])
	n.staying = slices.Concat(n.staying[:at], n.staying[at+1:])
	n.known()
}

// Sealed reports whether an instance ended because the log was sealed: the first of the active ones begins behind it.
func (n *Instances[I]) Sealed(id protocol.InstanceID) bool { return !n.cursor.Keyed && id < n.ids[0] }

// Pending reports whether the log has something of an instance that is not active yet.
func (n *Instances[I]) Pending(id protocol.InstanceID) bool { return n.pending[id] != nil }

// Check verifies the invariants.
func (n *Instances[I]) Check() error {
	both := slices.ContainsFunc(n.behind, func(id protocol.InstanceID) bool { return slices.Contains(n.ids, id) })
	if n.beginning < 0 {
		return fmt.Errorf("instances: %d beginnings more are durable than were begun", -n.beginning)
	}
	if n.early.bytes > earlyBytes || n.early.sum() != n.early.bytes {
		return fmt.Errorf("instances: %d bytes are kept for those that begin later, at most %d may; counted are %d",
			n.early.sum(), earlyBytes, n.early.bytes)
	}
	if both || !slices.IsSorted(n.ids) || len(n.ids) != len(n.inForce) || len(n.behind) != len(n.staying) {
		return fmt.Errorf("instances: %v are in force, %v are retired", n.ids, n.behind)
	}
	return nil
}

// End is the position of the global log after the snapshot with this meta if all entries of a member's logs were
// decided. all is false if it may be further, because other instances begin before it.
func (f *FoundInstances) End(meta *member.Meta, logs []member.InstanceLog) (end protocol.Position, all bool) {
	p := apply.NewPlanner(meta)
	if p == nil {
		return 0, false
	}
	all = len(f.pending) == 0 && meta.Cursor.Reshape == 0
	active := meta.Cursor.Instances()
	for len(active) > 0 {
		for i := range logs {
			if l := &logs[i]; slices.Contains(active, l.Instance) {
				p.Committed(l.Instance, l.Leads(p.Added(l.Instance)))
			}
		}
		active = nil
		for plan := p.Take(); plan != nil; plan = p.Take() {
			active, all = append(active, plan.Begin...), false
		}
	}
	return p.Position(), all
}

// Alone reports whether a member was the only voter in every membership that its log has, so that nothing was ever
// decided that its log had not synced.
func (f *FoundInstances) Alone(self protocol.MemberID) bool {
	alone := func(c *protocol.Config) bool { return !c.Joint() && len(c.Voters()) == 1 && c.Voter(self) }
	for _, log := range f.InForce {
		if !alone(&log.Recovered.Base.Config) {
			return false
		}
		for i := range log.Recovered.Entries {
			if e := &log.Recovered.Entries[i]; e.Kind == protocol.EntryConfig {
				if c, err := protocol.DecodeConfig(e.Payload); err != nil || !alone(&c) {
					return false
				}
			}
		}
	}
	return true
}
