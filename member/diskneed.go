package member

import "github.com/braidlog/braid/wal"

// SegmentBytes is how large the files of the log, and those of bodies, are: a quarter of the
// log between snapshots, for the log goes a whole file at a time, but within reason.
func SegmentBytes(snapshotBytes int64) int64 {
	return min(max(snapshotBytes/4, minSegment), wal.DefaultSegmentBytes)
}

const minSegment = 4 << 20

// DiskNeed is what a member's log and bodies may still take of the disk before they can give
// any back, in bytes.
type DiskNeed struct {
	// Segment is the size of a file, Command the largest command: one that does not fit gets
	// a file of its own size.
	Segment, Command int64
	// Snapshot is what a snapshot takes on the disk.
	Snapshot int64
	// SpareLog and SpareBodies are bytes of files that are there to be used.
	SpareLog, SpareBodies int64
}

// Bytes is the need: the log takes the segment that it goes on in and the one that is made beside
// it, and bodies a file to go on in and one to copy into what is alive in a file that is to go.
func (n DiskNeed) Bytes() int64 {
	each := 2*n.Segment + n.Command
	return max(0, each-n.SpareLog) + max(0, each-n.SpareBodies) + n.Snapshot
}
