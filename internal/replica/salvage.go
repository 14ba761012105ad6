package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/erasure"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/lifecycle"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// A majority that is lost permanently decides nothing any more. What a member that is left knows goes further than
// what it has applied: its log has entries of which it did not hear that they were decided, and acknowledged writes
// are among them. Salvage takes all of them for decided. That is wrong for a cluster that can continue, and so it
// only fills a state machine, from which a new cluster begins.

// SalvageOptions say what is salvaged.
type SalvageOptions struct {
	FS vfs.FS
	// Dir is the directory of a member that does not run. Others are those of further members of its cluster; only
	// the large bodies there are used.
	Dir    string
	Others []string
	// Behind are entries behind an instance's log that its core has on the disk; nil: there are none. The core is
	// named by the instance's profile, or as the directory records it.
	Behind func(core string) func(*protocol.Recovered) []protocol.Entry
	Guess  func() member.KindGuess
}

// Salvaged is what was found. Not safe for concurrent use.
type Salvaged struct {
	dir *datadir.Opened
	// stores are the bodies of all directories, the first member's own first.
	stores []*wal.Bodies
	opened []*wal.Bodies // those of others, which Close closes
	behind map[bodyAt]protocol.Entry
	// Kind is what the log was, behind its last seal. Position is how far the state came, and Behind how many entries
	// of it no one had told this member to be decided.
	Kind     member.LogKind
	Position protocol.Position
	Behind   int
	// Last is the last entry of the first instance's log: of several members behind the same seal the one that has the
	// highest term there, and of these the highest index, knows most.
	Last protocol.Base
}

type bodyAt struct {
	instance protocol.InstanceID
	index    protocol.Index
}

// keepsAnything is derived state of which nothing is needed.
type keepsAnything struct{}

func (keepsAnything) Apply(*protocol.Entry)          {}
func (keepsAnything) Section() protocol.Section      { return protocol.Section{} }
func (keepsAnything) Restore(protocol.Section) error { return nil }

// Salvage applies to a state machine everything that a member has: sm must be as it was when the member stopped, and is
// changed. An incarnation begins in the directory, as at each start; nothing else is changed there.
func Salvage(o SalvageOptions, sm member.StateMachine) (s *Salvaged, err error) {
	told, err := datadir.Inspect(o.FS, o.Dir, o.Guess)
	if err != nil {
		return nil, err
	}
	sm = datadir.InMemory(sm) // the member may wait for the state of another one
	own := Options{Cluster: told.Cluster, Self: told.Member}
	dir, err := datadir.Open(datadir.Config{
		FS: o.FS, Dir: o.Dir, Cluster: told.Cluster, Self: told.Member, Chance: systemChance, Machine: sm,
		Quorums: told.Quorums, Begin: told.Begin, Identity: own.identity(), Cells: true,
		Derive: func(protocol.Config) protocol.Derived { return keepsAnything{} },
	})
	if err != nil {
		return nil, err
	}
	s = &Salvaged{dir: dir, stores: []*wal.Bodies{dir.Bodies}, behind: map[bodyAt]protocol.Entry{}, Kind: told.Kind}
	err = s.openOthers(&o, told.Cluster)
	if err == nil {
		err = s.apply(sm, o.Behind)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Salvaged) openOthers(o *SalvageOptions, cluster uint64) error {
	for _, dir := range o.Others {
		told, err := datadir.Inspect(o.FS, dir, o.Guess)
		if err != nil {
			return err
		}
		if told.Cluster != cluster {
			return &member.DirError{Dir: dir, Detail: fmt.Sprintf("belongs to cluster %x, not to %x", told.Cluster, cluster)}
		}
		own := Options{Cluster: told.Cluster, Self: told.Member}
		b, err := datadir.OpenBodies(o.FS, dir, own.identity())
		if err != nil {
			return err
		}
		s.stores, s.opened = append(s.stores, b), append(s.opened, b)
	}
	return nil
}

// applied bounds how many entries are applied at once.
const salvagedAtOnce = 1000

// apply applies all entries of all instances, as if each was decided.
func (s *Salvaged) apply(
	sm member.StateMachine, behindOf func(core string) func(*protocol.Recovered) []protocol.Entry,
) error {
	a := apply.NewApplier(sm, s.dir.Meta, s.dir.Session(), s.dir.Skip, lifecycle.LoadFrom(s.dir.Log))
	logs, lasts := s.dir.Instances.Logs(), map[protocol.InstanceID]protocol.Base{}
	for i := range logs {
		rec, instance := logs[i].Recovered, logs[i].Instance
		entries := rec.Entries
		if behind := behindOf(cmp.Or(rec.Base.Config.Profile.Core, s.Kind.Core)); behind != nil {
			more := behind(rec)
			for _, e := range more {
				s.behind[bodyAt{instance, e.Index}] = e
			}
			entries = append(slices.Clip(entries), more...)
		}
		last := protocol.Base{Index: rec.Base.Index, Term: rec.Base.Term}
		if n := len(entries); n > 0 {
			last = protocol.Base{Index: entries[n-1].Index, Term: entries[n-1].Term}
		}
		lasts[instance] = last
		s.Behind += int(last.Index - min(last.Index, rec.State.Commit))
		for chunk := range slices.Chunk(entries, salvagedAtOnce) {
			if err := a.Apply(intake.CommittedEntries{Instance: instance, Entries: chunk}); err != nil {
				return err
			}
		}
	}
	if err := s.skip(a); err != nil {
		return err
	}
	if a.Stuck() || member.Damaged(sm) != nil {
		return &member.DirError{Dir: s.dir.Dir(),
			Detail: "the state machine, or a part of the log that is needed, is damaged: use another member's"}
	}
	at, config := a.Cursor(), a.Config()
	s.Position, s.Last = at.Position, lasts[at.Points[0].Instance]
	if config.Profile.Sealed() {
		s.Kind = member.KindBehind(&config.Profile)
	}
	if d, ok := sm.(member.DurableStateMachine); ok {
		return d.Sync()
	}
	return nil
}

// skip lets no instance wait for another one whose log ends before its own: what that one would have had in these
// rounds is lost.
func (s *Salvaged) skip(a *apply.Applier) error {
	for waits(a) && !a.Stuck() {
		at := a.Cursor()
		next := at.Next.Instance
		e := protocol.NewSkip(at.Next.Round)
		e.Seal(a.Added(next)+1, max(1, at.Point(next).Term), make([]byte, protocol.HeadSize))
		if err := a.Apply(intake.CommittedEntries{Instance: next, Entries: []protocol.Entry{e}}); err != nil {
			return err
		}
		if after := a.Cursor(); after.Next == at.Next && after.Position == at.Position {
			return fmt.Errorf("braid: the log of instance %d does not go on at round %d", next, at.Next.Round)
		}
	}
	return nil
}

func waits(a *apply.Applier) bool {
	at := a.Cursor()
	return at.Merged() &&
		slices.ContainsFunc(at.Instances(), func(id protocol.InstanceID) bool { return a.Waiting(id) > 0 })
}

// Body makes a body whole from what the directories have of it. If that is not enough, the error is a
// [*body.BodyError].
func (s *Salvaged) Body(_ context.Context, ref protocol.BodyRef) ([]byte, error) {
	var rows []erasure.Row
	for _, piece := range s.pieces(ref) {
		if piece.Form == protocol.FormWhole && protocol.Digest(piece.Bytes) == ref.Digest {
			return piece.Bytes, nil
		}
		r, ok := piece.Form.Row()
		if ok && !slices.ContainsFunc(rows, func(have erasure.Row) bool { return have.R == r }) {
			rows = append(rows, erasure.Row{R: r, Bytes: piece.Bytes})
		}
	}
	if len(rows) >= int(ref.K) && ref.K > 0 {
		whole, err := erasure.Join(int(ref.Size), ref.K, rows[:ref.K])
		if err == nil && protocol.Digest(whole) == ref.Digest {
			return whole, nil
		}
	}
	return nil, &body.BodyError{Ref: ref, Found: len(rows)}
}

func (s *Salvaged) pieces(ref protocol.BodyRef) (all []body.Fragment) {
	if e, ok := s.behind[bodyAt{ref.Instance, ref.Index}]; ok && e.Term == ref.Term && len(e.Body) > 0 {
		all = append(all, body.Fragment{Form: e.Form, Bytes: e.Body})
	}
	for _, b := range s.stores {
		kept, err := b.Read(uint32(ref.Instance), uint64(ref.Index))
		if err == nil && kept.Term == uint64(ref.Term) && kept.Size == ref.Size && kept.Digest == ref.Digest {
			all = append(all, body.Fragment{Form: protocol.Form(kept.Form), Bytes: slices.Clone(kept.Bytes)})
		}
	}
	return all
}

// Close closes what was opened.
func (s *Salvaged) Close() error {
	var errs []error
	for _, b := range s.opened {
		errs = append(errs, wal.IgnoreFailed(b.Close()))
	}
	return errors.Join(append(errs, s.dir.Close())...)
}

// FurthestFirst is [datadir.FurthestFirst].
func FurthestFirst(fs vfs.FS, dirs []string) (ordered, more []string, err error) {
	return datadir.FurthestFirst(fs, dirs)
}
