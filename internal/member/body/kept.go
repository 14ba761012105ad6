package body

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// BodyStore is where a member holds bodies and gives them up: *wal.Bodies.
type BodyStore interface {
	BodySource
	Each(yield func(wal.Body) bool)
	Release(instance uint32, index uint64)
}

// Kept is what a member knows of the bodies of all its instances, and what it tells their cores of
// them. It is a pure rule. It is not safe for concurrent use: package replica puts a lock around
// it.
type Kept struct {
	self   protocol.MemberID
	store  BodyStore
	keeper bool
	hooks  KeptHooks

	// all are the instances of which bodies may be held, ascending. The first instance is always
	// active. Its core is also told of the instances that are retired.
	all   []*Retention
	shape []protocol.InstanceID // active, ascending
	// unsure says that the state was damaged when the member started. No one knows to which bodies it refers, so
	// nothing is given up before the state was replaced.
	unsure bool
	turns  int // calls of Due

	// Count counts what happened. Failing is why a missing body could not be restored, nil if the
	// last attempt restored one.
	Count   BodyCounts
	Failing *BodyError
	Mutant  mutant.Name // code-sweep-referenced
}

// KeptHooks are told what follows from a change. None may block, or call Kept.
type KeptHooks struct {
	// Changed is told an instance. The core of that instance is to be given its News.
	Changed func(protocol.InstanceID)
	// Wanting is called when there may be something to restore.
	Wanting func()
	// Released is told of each body that is given up; nil: no one is.
	Released func(protocol.InstanceID, BodyKey)
}

// BodyCounts counts what happened to a member's bodies: those made whole from what others hold,
// answers with bytes sent to others, damage found, restored ones, and whole copies cut to a row.
type BodyCounts struct {
	Fetched, Served, Corrupt, Repaired, Trimmed uint64
}

// OpenKept begins with the bodies to which the logs and the state of a member refer when it starts, and gives up
// everything else. shape are the active instances. The logs of others may be at hand.
func OpenKept(self protocol.MemberID, store *wal.Bodies, hooks KeptHooks, sm member.StateMachine,
	shape []protocol.InstanceID, logs []member.InstanceLog) (*Kept, error) {
	refs, keeper, err := LiveBodies(sm)
	if err != nil {
		return nil, err
	}
	k := &Kept{self: self, store: store, keeper: keeper, hooks: hooks, shape: shape, unsure: member.Damaged(sm) != nil}
	needed := refs
	if k.unsure {
		store.Each(func(held wal.Body) bool {
			needed = append(needed, RefOf(&held))
			return true
		})
	}
	if err := RecoverBodies(logs, store, needed); err != nil {
		return nil, err
	}
	for _, l := range logs {
		k.host(l.Instance).Restart(l.Recovered.Base.Index, refs)
	}
	k.hostAll(refs)
	for _, t := range k.all {
		config := &logs[0].Recovered.Base.Config
		for _, l := range logs {
			if l.Instance == t.instance {
				config = &l.Recovered.Base.Config
			}
		}
		t.Renew(0, 0, refs)
		if k.unsure {
			t.Installing(0)
		}
		t.Obey(config, self)
	}
	return k, nil
}

// host begins to keep an instance's bodies, if that has not begun.
func (k *Kept) host(instance protocol.InstanceID) *Retention {
	at, ok := slices.BinarySearchFunc(k.all, instance,
		func(t *Retention, id protocol.InstanceID) int { return cmp.Compare(t.instance, id) })
	if !ok {
		k.all = slices.Insert(k.all, at, NewRetention(instance, k.store, k.keeper))
	}
	return k.all[at]
}

// hostAll begins to keep the bodies to which a state refers. An instance that is not known by now is retired, or begins
// behind a seal only when those before it are closed: see Begin. Only the state refers to its bodies.
func (k *Kept) hostAll(refs []protocol.BodyRef) {
	for _, ref := range refs {
		if k.Of(ref.Instance) == nil {
			k.host(ref.Instance).Compact(member.AllIndexes)
		}
	}
}

// Of is what is kept of an instance; nil if nothing is.
func (k *Kept) Of(instance protocol.InstanceID) *Retention {
	for _, t := range k.all {
		if t.instance == instance {
			return t
		}
	}
	return nil
}

// Begin begins to keep the bodies of an instance whose log begins after base.
func (k *Kept) Begin(instance protocol.InstanceID, base *protocol.Base) {
	t := k.host(instance)
	t.open(base.Index)
	t.Obey(&base.Config, k.self)
	k.notify(instance)
}

// Reshaped says which instances are active from now on. New ones have begun before. The state machine may not have come
// there.
func (k *Kept) Reshaped(shape []protocol.InstanceID) {
	k.shape = shape
	k.NotifyAll()
}

// Applied says where the state machine is. No one installs a snapshot any more for an instance that is retired there.
func (k *Kept) Applied(at *order.Cursor) {
	for _, t := range k.all {
		if t.ended || !at.Retired(t.instance) {
			continue
		}
		if t.ended = true; !k.unsure {
			t.installing = 0
		}
		k.notify(t.instance)
	}
}

func (k *Kept) inForce(instance protocol.InstanceID) bool {
	return slices.Contains(k.shape, instance)
}

// notify makes the core of an instance ask for its News, and the core that answers for retired
// instances.
func (k *Kept) notify(instance protocol.InstanceID) {
	k.hooks.Changed(instance)
	if first := k.shape[0]; !k.inForce(instance) {
		k.hooks.Changed(first)
	}
}

// NotifyAll makes all cores ask for their News.
func (k *Kept) NotifyAll() {
	for _, t := range k.all {
		k.hooks.Changed(t.instance)
	}
	k.hooks.Wanting()
}

// News is what an instance's core is to know of this member's bodies. changed says that the core
// must be told. News is asked for when everything that the core committed was taken in. The core
// is told before anything else. The first instance's core is also told of the live bodies of
// instances that are retired.
func (k *Kept) News(instance protocol.InstanceID) (in protocol.Bodies, changed bool) {
	t := k.Of(instance)
	if t == nil {
		return in, false
	}
	var rest protocol.Bodies
	if instance == k.shape[0] && len(k.all) > len(k.shape) {
		for _, o := range k.all {
			if !k.inForce(o.instance) {
				rest = join(rest, o.standing())
			}
		}
	}
	return t.input(rest)
}

// join adds up what two cores are to know of their instances' bodies.
func join(a, b protocol.Bodies) protocol.Bodies {
	a.Missing += b.Missing
	a.MaxK, a.Partial = max(a.MaxK, b.MaxK), max(a.Partial, b.Partial)
	return a
}

// Committed takes in what an instance committed, before it is applied. From here on the entries
// are without bodies, because applying does not need these.
func (k *Kept) Committed(instance protocol.InstanceID, entries []protocol.Entry) {
	t := k.Of(instance)
	t.Committed(entries)
	for i := range entries {
		if entries[i].BodySize > 0 {
			entries[i].Body = nil
		}
	}
	k.notify(instance)
	if t.Lacking()+t.Short() > 0 {
		k.hooks.Wanting()
	}
}

// Given says that the state machine gets a command with this body now.
func (k *Kept) Given(ref protocol.BodyRef) {
	if t := k.Of(ref.Instance); t != nil {
		t.Given(ref)
	}
}

// Passed says that the state machine will never be given a command with this body.
func (k *Kept) Passed(ref protocol.BodyRef) {
	if t := k.Of(ref.Instance); t != nil {
		t.Passed(ref)
		k.notify(ref.Instance)
	}
}

// Release says that the state machine does not refer to a body any more. It never will again, from
// whatever it is restored.
func (k *Kept) Release(ref protocol.BodyRef) {
	t := k.Of(ref.Instance)
	if t == nil {
		return
	}
	if t.Release(ref) {
		k.discard(ref.Instance, KeyOf(ref))
	}
	k.notify(ref.Instance)
}

func (k *Kept) discard(instance protocol.InstanceID, key BodyKey) {
	k.store.Release(uint32(instance), uint64(key.Index))
	if k.hooks.Released != nil {
		k.hooks.Released(instance, key)
	}
}

// Compacted says that an instance's log begins after floor. Sweep is to follow.
func (k *Kept) Compacted(instance protocol.InstanceID, floor protocol.Index) {
	k.Of(instance).Compact(floor)
	k.notify(instance)
}

// Installing says that a snapshot is about to replace the state, because of an instance: see
// Installed.
func (k *Kept) Installing(instance protocol.InstanceID, base protocol.Index) {
	if t := k.Of(instance); t.ended {
		t.Compact(base)
	} else {
		t.Installing(base)
	}
}

// Installed begins again with the state at a cursor. A snapshot brought that state, and it refers to refs. The log of
// one instance begins after base now; those of the others continue. Sweep is to follow. It returns how many bodies are
// missing.
func (k *Kept) Installed(instance protocol.InstanceID, base protocol.Index, cursor *order.Cursor,
	refs []protocol.BodyRef) (missing int) {
	k.hostAll(refs)
	for _, t := range k.all {
		if t.instance == instance {
			t.Restart(base, refs)
		}
		t.Renew(0, cursor.Point(t.instance).Index, refs)
		missing += t.Lacking()
	}
	k.NotifyAll()
	return missing
}

// Mended is Installed for a state that took the place of a damaged one. The logs are where they
// were.
func (k *Kept) Mended(cursor *order.Cursor, refs []protocol.BodyRef) {
	k.hostAll(refs)
	for _, t := range k.all {
		if k.unsure {
			t.Restart(0, refs)
		}
		t.Renew(0, cursor.Point(t.instance).Index, refs)
	}
	k.unsure = false
	k.NotifyAll()
}

// Sweep gives up bodies to which no one refers and past whose entries the logs are cut.
func (k *Kept) Sweep() {
	for _, t := range k.all {
		t.mutant = k.Mutant
		for _, key := range t.Dead(k.store) {
			k.discard(t.instance, key)
		}
	}
}

// Obey takes in what the configurations of the active instances, as applied, say about this member's bodies. There is
// one for each instance, in the same order. Retired instances obey the first one's. Those that begin later in the log
// obey the one with which they begin. It returns the instances for which that is news.
func (k *Kept) Obey(instances []protocol.InstanceID, configs []protocol.Config) (news []protocol.InstanceID) {
	for _, t := range k.all {
		at := slices.Index(instances, t.instance)
		if at < 0 && k.inForce(t.instance) {
			continue
		}
		if t.Obey(&configs[max(0, at)], k.self) {
			news = append(news, t.instance)
			k.notify(t.instance)
		}
	}
	if news != nil {
		k.hooks.Wanting()
	}
	return news
}

// Damaged says that what is held of a body is not what was written. It reports whether that is news about a body that
// someone needs. Then the body is missing.
func (k *Kept) Damaged(ref protocol.BodyRef) bool {
	t := k.Of(ref.Instance)
	if t == nil || !t.Lost(ref) {
		return false
	}
	k.Count.Corrupt++
	k.notify(ref.Instance)
	k.hooks.Wanting()
	return true
}

// Stored says that what was written of a body is durable.
func (k *Kept) Stored(ref protocol.BodyRef) {
	if t := k.Of(ref.Instance); t != nil {
		t.Stored(ref)
		k.notify(ref.Instance)
	}
}

// Restore asks whether a body may be written in a form now, because it was missing or more of it
// is to be held. upgrading says that the instance is writing more of the body than was held.
// Nothing less may replace that. The body of another entry at the same index is not replaced either:
// the log may have that entry. Restored is to follow when the bytes are durable.
func (k *Kept) Restore(ref protocol.BodyRef, form protocol.Form, upgrading bool) bool {
	t := k.Of(ref.Instance)
	if t == nil || !t.Wants(ref) || upgrading || !t.Missing(ref) && form != protocol.FormWhole {
		return false
	}
	if held, ok := k.store.Find(uint32(ref.Instance), uint64(ref.Index)); ok && held.Term != uint64(ref.Term) {
		return false // soon the log has this entry too, or nothing at its index
	}
	if t.Whole(ref) { // the core has seen to it
		k.Stored(ref)
		return false
	}
	return true
}

// Restored says that what was restored of a body is durable.
func (k *Kept) Restored(ref protocol.BodyRef) {
	k.Count.Repaired++
	k.Stored(ref)
}

// attempted says how an attempt to make a missing body whole ended. It reports whether Failing is
// set now and was not before.
func (k *Kept) attempted(ref protocol.BodyRef, err error) bool {
	var e *BodyError
	had := k.Failing != nil
	switch {
	case err == nil:
		k.Failing = nil
		return false
	case !errors.As(err, &e):
		return false
	case e.Waited:
		if t := k.Of(ref.Instance); t != nil {
			t.postponed(ref)
		}
		return false
	}
	k.Failing = e
	return !had
}

// Trim asks whether a whole copy may become a row now. If so, it counts as a row at once, and is
// to be written. Trimmed is to follow when that is durable.
func (k *Kept) Trim(ref protocol.BodyRef, upgrading bool) bool {
	t := k.Of(ref.Instance)
	if upgrading || !k.Cold(ref) || !t.Trim(ref) {
		return false // perhaps it is to be held whole, since the question was asked
	}
	k.notify(ref.Instance)
	return true
}

// Trimmed says that the row that takes the place of a whole copy is durable.
func (k *Kept) Trimmed(ref protocol.BodyRef) {
	k.Count.Trimmed++
	k.Stored(ref)
}

// Due takes up to n bodies that should be asked for now. It does not begin with the same instance
// every time.
func (k *Kept) Due(now time.Duration, n int) (refs []protocol.BodyRef) {
	for i := range k.all {
		refs = append(refs, k.all[(k.turns+i)%len(k.all)].Due(now, n-len(refs))...)
	}
	k.turns++
	return refs
}

// Wants reports whether a body is missing, or held as a row where it is to be whole.
func (k *Kept) Wants(ref protocol.BodyRef) bool {
	t := k.Of(ref.Instance)
	return t != nil && t.Wants(ref)
}

// Keeps reports whether what is held of a body stays: see Retention. It does not if nothing is kept of the
// instance.
func (k *Kept) Keeps(ref protocol.BodyRef) bool {
	t := k.Of(ref.Instance)
	return t != nil && t.Keeps(ref)
}

// Missing reports whether a body is known to be missing, or is of an instance of which nothing
// is kept.
func (k *Kept) Missing(ref protocol.BodyRef) bool {
	t := k.Of(ref.Instance)
	return t == nil || t.Missing(ref)
}

// Cold reports whether a body is committed, live, and not needed any more to bring other members
// up to date.
func (k *Kept) Cold(ref protocol.BodyRef) bool {
	t := k.Of(ref.Instance)
	return t != nil && t.Cold(ref)
}

// Lacking is how many bodies are missing.
func (k *Kept) Lacking() (n int) {
	for _, t := range k.all {
		n += t.Lacking()
	}
	return n
}

// Short is how many bodies are held as rows although they are to be held whole.
func (k *Kept) Short() (n int) {
	for _, t := range k.all {
		n += t.Short()
	}
	return n
}

// Check verifies the invariants.
func (k *Kept) Check() error {
	for _, t := range k.all {
		if err := t.Check(); err != nil {
			return err
		}
	}
	return nil
}
