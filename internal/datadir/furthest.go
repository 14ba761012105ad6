package datadir

import (
	"cmp"
	"path/filepath"

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

// logEnds returns the last entries of all logs in a directory, by instance. It only reads.
func logEnds(fs vfs.FS, dir string) (map[uint32]logEnd, error) {
	ends := map[uint32]logEnd{}
	err := wal.Records(fs, filepath.Join(dir, logDir), func(r wal.RecordInfo) error {
		if r.Kind != wal.KindEntry && r.Kind != wal.KindBase {
			return nil
		}
		rec, ok := member.ReadRecord(r.Kind, r.Index, r.Data)
		switch {
		case ok && rec.Base != nil && rec.Base.Index > ends[r.Instance].index:
			ends[r.Instance] = logEnd{rec.Base.Term, rec.Base.Index}
		case ok && rec.Kind == protocol.RecordEntry:
			ends[r.Instance] = logEnd{rec.Entry.Term, rec.Entry.Index}
		}
		return nil
	})
	return ends, err
}

// ahead is the number of instances in which a is longer than b.
func ahead(a, b map[uint32]logEnd) (n int) {
	for instance, end := range a {
		if end.compare(b[instance]) > 0 {
			n++
		}
	}
	return n
}

// FurthestFirst orders directories of stopped members: the one with the longest logs comes first. It is ahead of
// another one in more instances, or, if in as many, in the first instance. more are those that are ahead of it in
// some instance. It only reads.
func FurthestFirst(fs vfs.FS, dirs []string) (ordered, more []string, err error) {
	ends := make([]map[uint32]logEnd, len(dirs))
	best := 0
	for i, dir := range dirs {
		if ends[i], err = logEnds(fs, dir); err != nil {
			return nil, nil, err
		}
		a, b := ends[i], ends[best]
		first := a[uint32(protocol.FirstInstance)].compare(b[uint32(protocol.FirstInstance)])
		if cmp.Or(cmp.Compare(ahead(a, b), ahead(b, a)), first) > 0 {
			best = i
		}
	}
	for i, dir := range dirs {
		if ahead(ends[i], ends[best]) > 0 {
			more = append(more, dir)
		}
	}
	ordered = append([]string{dirs[best]}, dirs[:best]...)
	return append(ordered, dirs[best+1:]...), more, nil
}
