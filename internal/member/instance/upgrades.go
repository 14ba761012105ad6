package instance

import (
	"slices"

	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// Upgrades are bodies that an instance writes apart from their entries, because it holds more
// of them now. It is a pure rule; not safe for concurrent use.
type Upgrades struct{ list []upgrade }

// upgrade is a body that was submitted with step seq.
type upgrade struct {
	seq  uint64
	body body.BodyKey
}

// Note takes in what was submitted with step seq, and forgets what is durable.
func (u *Upgrades) Note(records []wal.Record, seq, durable uint64) {
	for i := range records {
		if r := &records[i]; r.Kind == wal.KindBody {
			u.list = append(u.list, upgrade{seq, body.BodyKey{Index: protocol.Index(r.Index), Term: protocol.Term(r.Body.Term)}})
		}
	}
	u.list = slices.DeleteFunc(u.list, func(o upgrade) bool { return o.seq <= durable })
}

// Writing reports whether a body is on its way to the disk. Nothing less may replace that.
func (u *Upgrades) Writing(ref protocol.BodyRef, durable uint64) bool {
	return slices.ContainsFunc(u.list, func(o upgrade) bool { return o.seq > durable && o.body == body.KeyOf(ref) })
}
