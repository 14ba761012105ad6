package datadir

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
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
	all, err := s.Positions()
	if errors.Is(err, os.ErrNotExist) {
		return orders, nil
	}
	for _, p := range all {
		f, err := s.Open(p)
		if member.IsDamage(err) {
			continue // the start handles it
		}
		if err != nil {
			return nil, err
		}
		if orders = []order.Kind{f.Header.Cursor.Kind()}; orders[0] == order.KindNiagara && id.Begun == 0 {
			orders = append(orders, order.KindSingle) // others joined the one instance with which it began
		}
		showSnapshot(&f.Header.Meta, g)
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return orders, err
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

// guessFromLog shows a guess the records of a log. Damaged records are ignored; the start handles them. It reports
// whether there is any record of an instance.
func guessFromLog(fs vfs.FS, dir string, g member.KindGuess) (written bool, err error) {
	err = wal.Records(fs, dir, func(r wal.RecordInfo) error {
		if rec, ok := member.ReadRecord(r.Kind, r.Index, r.Data); ok {
			g.Record(&rec)
			written = true
		}
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		return written, nil
	}
	return written, err
}
