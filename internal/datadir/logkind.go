package datadir

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// checkKind refuses a directory that has a log of another kind. It only reads. who.Kind is recorded with the next
// incarnation.
func (id *identity) checkKind(fs vfs.FS, dir string, who *Owner) error {
	if who.Kind.IsZero() {
		return nil
	}
	core := func(name string) string { return name }
	if who.Guess != nil {
		core = who.Guess().Core
	}
	if !id.Kind.IsZero() {
		return member.CheckLogKind(dir, []member.LogKind{id.Kind}, who.Kind, core)
	}
	if id.Incarnation == 0 || who.Guess == nil {
		return nil
	}
	has, err := id.guessKinds(fs, dir, who.Guess())
	if err != nil {
		return err
	}
	return member.CheckLogKind(dir, has, who.Kind, core)
}

// Born is how the log in a directory began, or how a running cluster's log is for a member that joins.
type Born struct {
	Kind member.LogKind
	// Instances is with how many merged instances it began; 0: it is not merged.
	Instances int
	// Sealed: the log may have a seal, so flags of any core are ignored. Epochs and Quorums are those with which it
	// began, as in [Owner], if flags may be of another core; "": they are not known.
	Sealed          bool
	Epochs, Quorums string
}

// BornAs returns how the log in a directory began, if the flags of a member do not count: they name another kind of the
// same core, and the log has a profile; the log may have a seal; or unnamed is set: the flags name no protocol. Else
// the result is zero. It only reads.
func BornAs(fs vfs.FS, dir string, flags member.LogKind, g member.KindGuess, unnamed bool) (b Born, err error) {
	id, err := parseIdentity(fs, dir)
	if errors.Is(err, os.ErrNotExist) {
		return b, nil
	}
	if err == nil {
		err = id.checkFormat(dir, 0)
	}
	switch {
	case err != nil || id.Kind.IsZero():
		return b, err
	case id.Format >= formatSealed:
		return id.born(true), nil
	case id.Kind == flags || !Founded(fs, dir):
		return b, nil
	case !id.Kind.Shares(flags, g.Core):
		if unnamed {
			b = id.born(false)
		}
		return b, nil
	}
	if has, err := id.hasProfile(fs, dir); !has || err != nil {
		return b, err
	}
	return Born{Kind: id.Kind, Instances: id.Begun}, nil
}

// born returns how the log began, for flags that may be of another core.
func (id *identity) born(sealed bool) Born {
	return Born{Kind: id.Kind, Instances: id.Begun, Sealed: sealed, Epochs: id.Epochs,
		Quorums: cmp.Or(id.Quorums, majority)}
}

// hasProfile reports whether the log in a directory has a profile. In a directory of an earlier version it is the log
// that says so, or a snapshot.
func (id *identity) hasProfile(fs vfs.FS, dir string) (has bool, err error) {
	if id.Profile {
		return true, nil
	}
	s := &Snapshots{fs: fs, dir: filepath.Join(dir, snapshotDir)}
	err = s.each(func(m *member.Meta) { has = has || m.Config.Profile.Version > 0 })
	if has || err != nil {
		return has, err
	}
	_, err = eachRecord(fs, filepath.Join(dir, logDir), func(r *protocol.Record) {
		if r.Kind != protocol.RecordEntry || r.Entry.Kind != protocol.EntryConfig {
			return
		}
		config, err := protocol.DecodeConfig(r.Entry.Payload)
		has = has || err == nil && config.Profile.Version > 0
	})
	return has, err
}

// guessKinds returns the possible kinds of a directory of an earlier version, which recorded none.
func (id *identity) guessKinds(fs vfs.FS, dir string, g member.KindGuess) (all []member.LogKind, err error) {
	orders, err := id.guessOrders(fs, dir, g)
	if err != nil {
		return nil, err
	}
	written, err := guessFromLog(fs, filepath.Join(dir, logDir), g)
	if err != nil {
		return nil, err
	}
	if len(orders) == 0 && !written { // a first start ended before it had created a log
		orders = []order.Kind{order.KindSingle, order.KindNiagara, order.KindKeyed}
	} else if len(orders) == 0 {
		orders = []order.Kind{order.KindSingle}
	}
	for _, o := range orders {
		for _, core := range g.Cores(o) {
			all = append(all, member.LogKind{Core: core, Order: o, Fragments: -1})
		}
	}
	return all, nil
}

// guessOrders returns the possible orders of the log, by the snapshots, which g is shown too; nil: there is no sign
// of several instances.
func (id *identity) guessOrders(fs vfs.FS, dir string, g member.KindGuess) (orders []order.Kind, err error) {
	if id.Begun > 0 {
		orders = []order.Kind{order.KindNiagara, order.KindKeyed}
	}
	s := &Snapshots{fs: fs, dir: filepath.Join(dir, snapshotDir)}
	err = s.each(func(m *member.Meta) {
		if orders = []order.Kind{m.Cursor.Kind()}; orders[0] == order.KindNiagara && id.Begun == 0 {
			orders = append(orders, order.KindSingle) // others joined the one instance with which it began
		}
		showSnapshot(m, g)
	})
	return orders, err
}

// each passes the beginning of each snapshot that is not damaged. The start handles the others.
func (s *Snapshots) each(do func(*member.Meta)) error {
	all, err := s.Positions()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, p := range all {
		f, err := s.Open(p)
		if member.IsDamage(err) {
			continue
		}
		if err != nil {
			return err
		}
		do(&f.Header.Meta)
		if err := f.Close(); err != nil {
			return err
		}
	}
	return err
}

func showSnapshot(m *member.Meta, g member.KindGuess) {
	for _, p := range m.Cursor.Points {
		if p.Index == 0 {
			continue
		}
		section := ""
		if len(m.Sections) > 0 {
			section = m.Sections[0].Name
		}
		g.Snapshot(section)
		return
	}
}

// guessFromLog shows a guess the records of a log. It reports whether there is any record of an instance.
func guessFromLog(fs vfs.FS, dir string, g member.KindGuess) (written bool, err error) {
	return eachRecord(fs, dir, g.Record)
}

// eachRecord passes the records of a log. Damaged records are ignored; the start handles them. It reports whether there
// is any record of an instance.
func eachRecord(fs vfs.FS, dir string, do func(*protocol.Record)) (written bool, err error) {
	err = wal.Records(fs, dir, func(r wal.RecordInfo) error {
		if rec, ok := member.ReadRecord(r.Kind, r.Index, r.Data); ok {
			do(&rec)
			written = true
		}
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		return written, nil
	}
	return written, err
}
