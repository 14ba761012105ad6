package body

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// Retention knows which bodies of committed entries are live on a member: those of entries in the
// log, and those to which the state machine refers. It knows which of them are missing, which are
// held as rows although they are to be held whole, and in what order to try to get them. It is a
// pure rule; not safe for concurrent use.
type Retention struct {
	instance protocol.InstanceID
	bodies   BodySource
	keeper   bool

	floor protocol.Index // the log's base: entries after it keep their bodies
	// covered is the index up to which a snapshot took the place of applying entries. If the state
	// does not refer to a body of these, it never will.
	covered protocol.Index
	// installing is how many snapshots are being put in place of the state. Until that is done no one knows to which
	// bodies the state refers.
	installing int
	ended      bool               // the state machine has come to where the instance is retired
	logged     []protocol.BodyRef // of committed entries after floor, ascending
	refs       map[BodyKey]protocol.BodyRef
	// byK counts the bodies in logged and in refs by their k. It counts those in both twice.
	byK [256]int

	// unused are bodies of entries in the log to which the state machine will never refer. Other
	// members may have given them up. So they do not count as missing when they are not there.
	unused  map[BodyKey]bool
	missing map[BodyKey]*lack
	// partial are the bodies in use that are coded and not known to be whole and durable here.
	// partialK counts them by their k. A body is in use if it is live and not unused.
	partial  map[BodyKey]protocol.BodyRef
	partialK [256]int
	// wholeAbove says that bodies in use with a larger k are to be held whole; 0: none. short are
	// those of them that are held only as a row: they are partial and not missing. restripes names
	// the configuration that says so.
	wholeAbove uint8
	restripes  uint32
	short      map[BodyKey]*lack
	// trims are whole copies on their way to become rows. The disk may still have the whole.
	trims map[BodyKey]bool
	queue []*lack // in the order in which they are tried; some may be neither missing nor short by now
	told  protocol.Bodies
	owed  bool // the core must be told, whether there is news or not

	mutant mutant.Name // code-sweep-referenced
}

// BodyKey names a body within its instance.
type BodyKey struct {
	Index protocol.Index
	Term  protocol.Term
}

// inOrder lists the keys of a map, ascending.
func inOrder[V any](m map[BodyKey]V) []BodyKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b BodyKey) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Term, b.Term))
	})
}

// KeyOf names a body among those of its instance.
func KeyOf(ref protocol.BodyRef) BodyKey { return BodyKey{ref.Index, ref.Term} }

// lack is a body that is missing, or of which more is to be held than is held.
type lack struct {
	ref   protocol.BodyRef
	next  time.Duration // when to ask (again)
	tries int
	found bool // it is there now
}

// The pause between attempts to get a missing body.
const (
	lackPause    = 500 * time.Millisecond
	lackMaxShift = 6
	// lackScan is how many waiting bodies are looked at in one go.
	lackScan = 1024
)

// NewRetention returns a Retention for one instance. keeper says that the state machine itself
// tells which bodies it does not need any more.
func NewRetention(instance protocol.InstanceID, bodies BodySource, keeper bool) *Retention {
	return &Retention{
		instance: instance, bodies: bodies, keeper: keeper,
		refs: map[BodyKey]protocol.BodyRef{}, unused: map[BodyKey]bool{}, missing: map[BodyKey]*lack{},
		partial: map[BodyKey]protocol.BodyRef{}, short: map[BodyKey]*lack{}, trims: map[BodyKey]bool{}, owed: true,
	}
}

// Restart begins again after a snapshot. refs are the bodies to which the state refers now. The log begins after floor.
func (t *Retention) Restart(floor protocol.Index, refs []protocol.BodyRef) {
	t.installing = max(0, t.installing-1)
	t.Renew(floor, floor, refs)
}

// Renew takes in a state that a snapshot brought. The state refers to refs, and stands for this
// instance's entries up to covered. The log begins after floor, or later.
func (t *Retention) Renew(floor, covered protocol.Index, refs []protocol.BodyRef) {
	t.owed = true
	t.covered = max(t.covered, covered)
	for _, ref := range t.refs { // any order: they are counted
		t.byK[ref.K]--
	}
	t.refs = make(map[BodyKey]protocol.BodyRef, len(refs))
	for _, ref := range refs {
		if key := KeyOf(ref); ref.Instance == t.instance && t.refs[key] == (protocol.BodyRef{}) {
			t.refs[key] = ref
			t.byK[ref.K]++
		}
	}
	for _, key := range inOrder(t.partial) {
		if _, referenced := t.refs[key]; !referenced && !t.inLog(key) {
			// A snapshot before this one referred to it; its entry may never come here.
			t.settled(key)
		}
	}
	t.cut(floor)
	for _, ref := range t.logged {
		t.passOver(ref)
	}
	for _, ref := range refs {
		if ref.Instance == t.instance {
			delete(t.unused, KeyOf(ref))
			t.noteUse(ref, t.held(ref))
		}
	}
}

// noteUse notes that a body is in use.
func (t *Retention) noteUse(ref protocol.BodyRef, held bool) {
	key := KeyOf(ref)
	if !held {
		t.miss(ref)
		t.enough(key)
	}
	switch {
	case ref.K < 2 || held && t.whole(ref):
		t.settled(key)
		return
	case t.partial[key] == (protocol.BodyRef{}):
		t.partial[key] = ref
		t.partialK[ref.K]++
	}
	if t.missing[key] == nil && t.wholeAbove > 0 && ref.K > t.wholeAbove && t.short[key] == nil {
		l := &lack{ref: ref}
		t.short[key] = l
		t.queue = append(t.queue, l)
	}
}

// settled says that a body is held whole, or that it is not in use any more.
func (t *Retention) settled(key BodyKey) {
	if ref, ok := t.partial[key]; ok {
		delete(t.partial, key)
		t.partialK[ref.K]--
	}
	t.enough(key)
}

// enough says that what is held of a body is enough.
func (t *Retention) enough(key BodyKey) {
	if l := t.short[key]; l != nil {
		l.found = true
		delete(t.short, key)
	}
}

// Obey takes in what the configuration that was just applied says about this member. From here on
// Trim obeys it too. It reports whether that is news.
func (t *Retention) Obey(c *protocol.Config, self protocol.MemberID) bool {
	above := uint8(0)
	if m := c.Find(self); m != nil {
		above = m.WholeAbove
	}
	if c.Restripes == t.restripes && above == t.wholeAbove {
		return false
	}
	t.restripes, t.wholeAbove = c.Restripes, above
	refs := make([]protocol.BodyRef, 0, len(t.partial))
	for _, key := range inOrder(t.partial) {
		t.enough(key)
		refs = append(refs, t.partial[key])
	}
	for _, ref := range refs {
		if t.missing[KeyOf(ref)] == nil {
			t.noteUse(ref, true)
		}
	}
	return true
}

// Trim asks whether a whole copy may become a row. If so, it counts as a row at once, and is to be
// written. Stored says when that is done.
func (t *Retention) Trim(ref protocol.BodyRef) bool {
	key := KeyOf(ref)
	if t.installing > 0 || !t.alive(key) || t.trims[key] || t.missing[key] != nil ||
		t.wholeAbove > 0 && ref.K > t.wholeAbove {
		return false
	}
	if !t.unused[key] && t.partial[key] == (protocol.BodyRef{}) {
		t.partial[key] = ref
		t.partialK[ref.K]++
	}
	t.trims[key] = true
	return true
}

// passOver reports whether a logged body is one that the state never uses. Either the state has the
// command without having been given it, and does not refer to the body. Or it came with a snapshot
// that referred to the body, and gave it up before the entry came.
func (t *Retention) passOver(ref protocol.BodyRef) bool {
	if ref.Index <= t.covered {
		t.Passed(ref)
	}
	return t.unused[KeyOf(ref)]
}

// cut makes floor the log's base, if it is further, and forgets bodies that are not live any more.
func (t *Retention) cut(floor protocol.Index) {
	t.floor = max(t.floor, floor)
	n := 0
	for n < len(t.logged) && t.logged[n].Index <= t.floor {
		t.byK[t.logged[n].K]--
		if key := KeyOf(t.logged[n]); !t.alive(key) {
			t.settled(key)
		}
		n++
	}
	t.logged = t.logged[n:]
	for _, key := range inOrder(t.missing) {
		if !t.alive(key) {
			t.found(key)
		}
	}
	maps.DeleteFunc(t.unused, func(key BodyKey, _ bool) bool { return !t.alive(key) })
}

// held reports whether anything of a body is on disk, as far as is known.
func (t *Retention) held(ref protocol.BodyRef) bool {
	b, ok := t.bodies.Find(uint32(ref.Instance), uint64(ref.Index))
	return ok && b.Term == uint64(ref.Term) && b.Form != uint8(protocol.FormNone)
}

// whole reports whether all of a body is on disk, durably, and stays there.
func (t *Retention) whole(ref protocol.BodyRef) bool {
	b, ok := t.bodies.Find(uint32(ref.Instance), uint64(ref.Index))
	return ok && !t.trims[KeyOf(ref)] && b.Term == uint64(ref.Term) && b.Form == uint8(protocol.FormWhole) &&
		t.bodies.Durable(uint32(ref.Instance), uint64(ref.Index))
}

// inLog reports whether a body's entry is committed and in the log.
func (t *Retention) inLog(key BodyKey) bool {
	at, ok := slices.BinarySearchFunc(t.logged, key.Index,
		func(r protocol.BodyRef, i protocol.Index) int { return cmp.Compare(r.Index, i) })
	return ok && t.logged[at].Term == key.Term
}

func (t *Retention) alive(key BodyKey) bool {
	_, referenced := t.refs[key]
	return referenced || key.Index > t.floor
}

// Committed takes in committed entries, before they are applied.
func (t *Retention) Committed(entries []protocol.Entry) {
	for i := range entries {
		e := &entries[i]
		if e.BodySize == 0 || e.Index <= t.floor {
			continue
		}
		ref := e.Ref(t.instance)
		t.logged = append(t.logged, ref)
		t.byK[ref.K]++
		if e.Form == protocol.FormNone || e.Coded() {
			t.owed = true // the core takes it to be missing, or partial, which it need not be
		}
		if !t.passOver(ref) {
			t.noteUse(ref, e.Form != protocol.FormNone || t.held(ref))
		}
	}
}

// Given says that the state machine was given a command with this body.
func (t *Retention) Given(ref protocol.BodyRef) {
	if _, twice := t.refs[KeyOf(ref)]; !t.keeper || twice {
		return
	}
	t.refs[KeyOf(ref)] = ref
	t.byK[ref.K]++
}

// Release says that the state machine does not refer to a body any more. If it is dead now,
// the owner releases it in the store.
func (t *Retention) Release(ref protocol.BodyRef) (dead bool) {
	key := KeyOf(ref)
	if _, ok := t.refs[key]; !ok || ref.Instance != t.instance {
		return false
	}
	delete(t.refs, key)
	t.byK[ref.K]--
	t.found(key)
	t.settled(key)
	if t.alive(key) {
		t.unused[key] = true
		return false
	}
	return true
}

// Passed says that a command with this body was not given to the state machine, because it was
// applied before. If the state machine does not refer to the body by now, it never will.
func (t *Retention) Passed(ref protocol.BodyRef) {
	key := KeyOf(ref)
	if _, referenced := t.refs[key]; t.keeper && !referenced && ref.Index > t.floor {
		t.found(key)
		t.settled(key)
		t.unused[key] = true
	}
}

// Installing says that a snapshot with this base will soon replace the state: see Restart.
func (t *Retention) Installing(base protocol.Index) {
	t.installing++
	t.cut(base)
}

// open says that the instance begins, with a log after floor. A state may have referred to its bodies before.
func (t *Retention) open(floor protocol.Index) {
	if t.floor == member.AllIndexes {
		t.floor = floor
	}
	t.cut(floor)
}

// Compact says that the log begins after floor.
func (t *Retention) Compact(floor protocol.Index) { t.cut(floor) }

// Dead lists the bodies that may be given up: the log is cut past their entries and no one refers to them. Bodies that
// were replaced and never committed are among them.
func (t *Retention) Dead(bodies BodyStore) (dead []BodyKey) {
	if t.installing > 0 {
		return nil
	}
	bodies.Each(func(b wal.Body) bool {
		key := BodyKey{protocol.Index(b.Index), protocol.Term(b.Term)}
		alive := t.alive(key) && (t.mutant != member.MutantSweepReferenced || key.Index > t.floor)
		if b.Instance == uint32(t.instance) && !alive {
			dead = append(dead, key)
		}
		return true
	})
	return dead
}

// Stored says that what was written of a body that was missing, short or trimmed is durable.
func (t *Retention) Stored(ref protocol.BodyRef) {
	key := KeyOf(ref)
	t.found(key)
	delete(t.trims, key)
	if t.partial[key] != (protocol.BodyRef{}) {
		t.noteUse(ref, true)
	}
}

// Lost says that what is held of a committed body is damaged. It reports whether that is news
// about a body that is in use.
func (t *Retention) Lost(ref protocol.BodyRef) bool {
	key := KeyOf(ref)
	if _, referenced := t.refs[key]; !t.inLog(key) && !referenced || t.unused[key] || t.missing[key] != nil {
		return false
	}
	t.noteUse(ref, false)
	return true
}

// Keeps reports whether what is held of a body is not missing, and stays until no one needs it: its entry is known to
// be committed here, or the state refers to it. What this member only acknowledged may go, also if it is committed
// elsewhere: a leader of an earlier term may have other entries there, or find that it was not committed in its time.
func (t *Retention) Keeps(ref protocol.BodyRef) bool {
	key := KeyOf(ref)
	_, referenced := t.refs[key]
	return !t.Missing(ref) && (referenced || t.inLog(key))
}

// Missing reports whether a body is known to be missing here.
func (t *Retention) Missing(ref protocol.BodyRef) bool { return t.missing[KeyOf(ref)] != nil }

// Wants reports whether a body is missing here, or held as a row where it is to be whole.
func (t *Retention) Wants(ref protocol.BodyRef) bool {
	return t.missing[KeyOf(ref)] != nil || t.short[KeyOf(ref)] != nil
}

// Whole reports whether all of a body is on disk, durably and undamaged as far as is known.
func (t *Retention) Whole(ref protocol.BodyRef) bool {
	return t.missing[KeyOf(ref)] == nil && t.whole(ref)
}

// Cold reports whether a body is live, not missing, and of an entry past which the log is cut.
func (t *Retention) Cold(ref protocol.BodyRef) bool {
	key := KeyOf(ref)
	return t.installing == 0 && ref.Index <= t.floor && t.alive(key) && t.missing[key] == nil
}

// Lacking is how many bodies are missing.
func (t *Retention) Lacking() int { return len(t.missing) }

// Short is how many bodies are held as rows although they are to be held whole.
func (t *Retention) Short() int { return len(t.short) }

func (t *Retention) miss(ref protocol.BodyRef) {
	key := KeyOf(ref)
	if t.missing[key] == nil {
		l := &lack{ref: ref}
		t.missing[key] = l
		t.queue = append(t.queue, l)
	}
}

func (t *Retention) found(key BodyKey) {
	if l := t.missing[key]; l != nil {
		l.found = true
		delete(t.missing, key)
	}
}

// Due takes up to n missing or short bodies that should be asked for now. Each comes again later,
// unless Stored says that it is there.
func (t *Retention) Due(now time.Duration, n int) (refs []protocol.BodyRef) {
	for range min(len(t.queue), lackScan) {
		if len(refs) >= n {
			break
		}
		l := t.queue[0]
		t.queue = t.queue[1:]
		if l.found {
			continue
		}
		if l.next <= now {
			refs = append(refs, l.ref)
			l.next = now + lackPause<<min(l.tries, lackMaxShift)
			l.tries++
		}
		t.queue = append(t.queue, l)
	}
	return refs
}

// postponed says that no one was asked for a body, because others took all the room. It is due at once. The others
// pause now: if they are bodies that no one has any more, they must not take its turn forever.
func (t *Retention) postponed(ref protocol.BodyRef) {
	for _, l := range [...]*lack{t.missing[KeyOf(ref)], t.short[KeyOf(ref)]} {
		if l != nil {
			l.next, l.tries = 0, max(0, l.tries-1)
		}
	}
}

// Input is what the core is to know about this member's bodies. changed says that the core must be told, because that
// is news or because everything began again. Input is asked for when everything that the core committed was taken in.
// The core is told before anything else.
func (t *Retention) Input() (in protocol.Bodies, changed bool) { return t.input(protocol.Bodies{}) }

// input is Input of a core that is also told of other instances' bodies.
func (t *Retention) input(others protocol.Bodies) (in protocol.Bodies, changed bool) {
	in = join(t.standing(), others)
	news := in
	news.Missing = t.told.Missing
	changed = t.owed || news != t.told || (in.Missing == 0) != (t.told.Missing == 0)
	if changed = changed && t.installing == 0; changed {
		t.told, t.owed = in, false
	}
	return in, changed
}

// standing is what this member has of the instance's bodies, as its core is to know it.
func (t *Retention) standing() protocol.Bodies {
	return protocol.Bodies{Missing: len(t.missing), MaxK: largest(&t.byK), Partial: largest(&t.partialK),
		Restripes: t.restripes}
}

// largest is the largest k of which there are any bodies, 0 if there are none.
func largest(byK *[256]int) uint8 {
	for k := len(byK) - 1; k > 0; k-- {
		if byK[k] > 0 {
			return uint8(k)
		}
	}
	return 0
}

// Check verifies the invariants.
func (t *Retention) Check() error {
	var byK [256]int
	for i, ref := range t.logged {
		if ref.Index <= t.floor || i > 0 && t.logged[i-1].Index >= ref.Index {
			return fmt.Errorf("retention: entry %d in the log after %d", ref.Index, t.floor)
		}
		byK[ref.K]++
	}
	for _, ref := range t.refs { // any order: they are counted
		byK[ref.K]++
	}
	if byK != t.byK {
		return fmt.Errorf("retention: bodies are counted wrong")
	}
	for key := range t.missing { // any order: one that is wrong is enough
		if !t.alive(key) {
			return fmt.Errorf("retention: body of entry %d is missing, but dead", key.Index)
		}
	}
	return t.checkPartial()
}

func (t *Retention) checkPartial() error {
	var partialK [256]int
	for key, ref := range t.partial { // any order: they are counted, and one that is wrong is enough
		partialK[ref.K]++
		if !t.alive(key) || t.unused[key] || KeyOf(ref) != key {
			return fmt.Errorf("retention: part of entry %d's body is held, which nobody uses", key.Index)
		}
		short := t.wholeAbove > 0 && ref.K > t.wholeAbove && t.missing[key] == nil
		if (t.short[key] != nil) != short {
			return fmt.Errorf("retention: body of entry %d, k=%d, is to be short: %t; whole above %d", key.Index, ref.K, short,
				t.wholeAbove)
		}
	}
	if partialK != t.partialK {
		return fmt.Errorf("retention: parts are counted wrong")
	}
	for key := range t.short { // any order: one that is wrong is enough
		if _, ok := t.partial[key]; !ok {
			return fmt.Errorf("retention: body of entry %d is short, but whole or of no use", key.Index)
		}
	}
	return nil
}
