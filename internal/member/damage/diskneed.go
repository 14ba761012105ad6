package damage

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/wal"
)

// SegmentBytes is how large the files of the log and of bodies are: a quarter of the log between
// snapshots, within limits. The log is given up a whole file at a time.
func SegmentBytes(snapshotBytes int64) int64 {
	return min(max(snapshotBytes/4, minSegment), wal.DefaultSegmentBytes)
}

const minSegment = 4 << 20

// DiskNeed is what a member's log and bodies may still take of the disk before they can give
// any back, in bytes.
type DiskNeed struct {
	// Segment is the size of a file. Command is the largest command: a command that does not fit
	// into a file gets one of its own size.
	Segment, Command int64
	// Snapshot is what a snapshot takes on the disk.
	Snapshot int64
	// SpareLog and SpareBodies are bytes of files that are ready for use.
	SpareLog, SpareBodies int64
	Mutant                mutant.Name // needs-no-file
}

// Bytes is the need. The log takes the segment that it writes now and the one that is made alongside it. Bodies take a
// file that they write now, and one into which live bodies are copied from a file that is to go.
func (n DiskNeed) Bytes() int64 {
	each := 2*n.Segment + n.Command
	if n.Mutant == member.MutantNeedsNoFile {
		each = 0
	}
	return max(0, each-n.SpareLog) + max(0, each-n.SpareBodies) + n.Snapshot
}
