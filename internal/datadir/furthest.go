package datadir

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// logEnd is the last entry of an instance's log.
type logEnd struct {
	term  protocol.Term
	index protocol.Index
}

func (e logEnd) compare(f logEnd) int {
	return cmp.Or(cmp.Compare(e.term, f.term), cmp.Compare(e.index, f.index))
}

// logEnds are the last entries of the logs in a directory, by instance. first is the lowest of the instances behind the
// last seal: what is longer in an instance before them does not count.
type logEnds struct {
	ends  map[uint32]logEnd
	first uint32
}

// readLogEnds returns the last entries of all logs in a directory. It only reads.
func readLogEnds(fs vfs.FS, dir string) (l logEnds, err error) {
	ends, ended := map[uint32]logEnd{}, protocol.InstanceID(0)
	var begun []uint32 // behind a seal, as the log has it
	first := uint32(protocol.FirstInstance)
	snapshots := &Snapshots{fs: fs, dir: filepath.Join(dir, snapshotDir)}
	err = snapshots.each(func(m *member.Meta) { first = max(first, uint32(m.Cursor.Points[0].Instance)) })
	if err != nil {
		return l, err
	}
	err = wal.Records(fs, filepath.Join(dir, logDir), func(r wal.RecordInfo) error {
		if r.Kind != wal.KindEntry && r.Kind != wal.KindBase {
			return nil
		}
		rec, ok := member.ReadRecord(r.Kind, r.Index, r.Data)
		if ok && rec.Base != nil && len(rec.Base.Ended) > 0 {
			begun = append(begun, r.Instance)
			for _, e := range rec.Base.Ended {
				ended = max(ended, e.Instance)
			}
		}
		switch {
		case ok && rec.Base != nil && rec.Base.Index > ends[r.Instance].index:
			ends[r.Instance] = logEnd{rec.Base.Term, rec.Base.Index}
		case ok && rec.Kind == protocol.RecordEntry:
			ends[r.Instance] = logEnd{rec.Entry.Term, rec.Entry.Index}
		}
		return nil
	})
	begun = slices.DeleteFunc(begun, func(id uint32) bool { return id <= uint32(ended) })
	if len(begun) > 0 {
		first = max(first, slices.Min(begun))
	}
	return logEnds{ends, first}, err
}

// compare orders directories by how far their logs go.
func (l *logEnds) compare(o *logEnds) int {
	return cmp.Or(cmp.Compare(l.first, o.first), cmp.Compare(l.ahead(o), o.ahead(l)),
		l.ends[l.first].compare(o.ends[l.first]))
}

// ahead is the number of instances in which l is longer than o.
func (l *logEnds) ahead(o *logEnds) (n int) {
	for instance, end := range l.ends {
		if instance >= o.first && end.compare(o.ends[instance]) > 0 {
			n++
		}
	}
	return n
}

// FurthestFirst orders directories of stopped members: the one with the longest logs comes first. It has begun what is
// behind a later seal than another one has, or is ahead of it in more instances, or, if in as many, in the first
// instance. more are those that are ahead of it in some instance. It only reads.
func FurthestFirst(fs vfs.FS, dirs []string) (ordered, more []string, err error) {
	if len(dirs) == 0 {
		return nil, nil, nil
	}
	ends := make([]logEnds, len(dirs))
	best := 0
	for i, dir := range dirs {
		if ends[i], err = readLogEnds(fs, dir); err != nil {
			return nil, nil, err
		}
		if ends[i].compare(&ends[best]) > 0 {
			best = i
		}
	}
	for i, dir := range dirs {
		if ends[i].ahead(&ends[best]) > 0 {
			more = append(more, dir)
		}
	}
	ordered = append([]string{dirs[best]}, dirs[:best]...)
	return append(ordered, dirs[best+1:]...), more, nil
}
