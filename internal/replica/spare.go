package replica

import (
	"github.com/braidlog/braid/internal/member/damage"
)

// checkpointBytes is the size of a snapshot without state: it has the memberships, and which proposals
// took effect.
const checkpointBytes = 1 << 20

// DiskNeed returns how many free bytes the log and the bodies of this member need on the disk.
func (r *Replica) DiskNeed() int64 {
	n := damage.DiskNeed{
		Segment: damage.SegmentBytes(r.opt.SnapshotBytes), Command: int64(r.opt.MaxCommandBytes), Snapshot: checkpointBytes,
		SpareLog: r.dir.Log.Spare(), SpareBodies: r.bodies.store.Spare(),
	}
	return n.Bytes()
}
