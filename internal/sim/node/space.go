package node

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/member/damage"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
)

// Space on a member's disk.

var (
	lowDisks          = count.New("low_disks", "disks nearly full")
	StartsOnFullDisks = count.New("starts_on_full_disks", "starts on full disks")
)

// Shortage is the state of a member whose disk has only about the space that it needs.
type Shortage struct {
	// Of is the disk with the shortage; nil, or a disk that the member no longer has: there is none.
	Of *device.Disk
	// low: less space is free than the member may need. written is the number of bytes that were written to the disk
	// when it became low. heard is the time at which the others learn of it.
	low     bool
	written int64
	heard   time.Duration
}

// errLowDisk refuses a write before it is proposed. A retry is safe.
var errLowDisk = errors.New("the disk of a member is nearly full")

// leastFile is the minimal size of a file.
const leastFile = 16 << 10

// Need returns the space that the member's log and bodies may still take.
func (m *Member) Need() int64 {
	set := m.Own
	n := damage.DiskNeed{
		Segment: max(set.SegmentBytes, set.Bodies.SegmentBytes, leastFile), Command: set.largest(), Snapshot: 4096 + set.SegmentBytes/2 + set.largest(),
		SpareLog: m.Log.Spare(), SpareBodies: m.Body.Store.Spare(), Mutant: m.Env.Set.MutantName(),
	}
	return n.Bytes()
}

// largest returns the maximal length of an entry: a batch of commands, or one command with its body.
func (s *Settings) largest() int64 {
	command := s.Padding + 500
	return int64(max(min(s.BatchBytes+command, s.BatchCommands*command), s.Bodies.Max+500))
}

// largestEntry returns the maximal length of an entry of the log. If proposals go into slots, an entry may be a group
// of batches.
func (s *Settings) largestEntry() int64 {
	most := s.largest()
	if c := &s.Core; s.mayHaveCells() && c.MaxFrameEntries != 1 {
		most = max(most, int64(min(c.MaxFrameBytes, c.MaxUncommittedBytes)))
	}
	if s.ByKey() { // or commands of all members that depend on each other
		most *= int64(s.Nodes)
	}
	return most
}

// lastBytes returns the bytes that a member can write to a low disk before the log has no file left: the log has two
// more, each less an entry that does not fit. A part may be snapshots.
func (s *Settings) lastBytes() int64 { return s.SegmentBytes * 3 / 2 }

// looksAtDisk records whether the member's disk has less free space than the member needs.
func (m *Member) looksAtDisk() (low bool) {
	d := m.Disk
	if !m.Up || !d.Full || m.Short.Of != d {
		return false
	}
	if !m.Short.low && int64(d.Capacity-d.Used()) <= m.Need() {
		m.Short.low, m.Short.written, m.Short.heard = true, d.Written, m.Env.Now()+m.Env.Between(0, 4*m.Env.Set.Election)
		m.Env.Count(lowDisks)
		m.Env.Tracef("%s   has a disk that is nearly full", m.ID)
	}
	return m.Short.low
}

// refuses reports whether the member refuses its clients' writes, because its disk or a known disk of another member
// is nearly full.
func (m *Member) refuses() bool {
	return slices.ContainsFunc(m.Env.Members, func(o *Member) bool {
		return o.looksAtDisk() && (o == m || m.Env.Now() >= o.Short.heard)
	})
}

// judgeFullDisk checks that the log had space for its next file for as long as the member promised: the member had
// the space that it needs, and has written hardly anything since. With entries that fill a large part of a file, the
// space for them is not known.
func judgeFullDisk(m *Member, why error) {
	d := m.Disk
	if m.Short.Of != d || 4*m.Own.largestEntry() > m.Own.SegmentBytes {
		return
	}
	if !m.Short.low || d.Written-m.Short.written <= m.Own.lastBytes() {
		m.Env.Violate(m.ID, fmt.Errorf("lacks a file although its disk had what it said it needs, low %t: %w", m.Short.low, why))
	}
}

// StartsFull reports whether the member can start on its full disk: the disk has the space for a start, and a log,
// because the first segment needs space too.
func (m *Member) StartsFull() bool {
	d := m.Disk
	return d.Space(path.Join(device.Root, "ballast")) > 0 && hasSegment(d) && len(d.CopyOnWrite) == 0
}

// hasSegment reports whether the log has a segment.
func hasSegment(d *device.Disk) bool {
	return slices.ContainsFunc(d.Names(LogDir), func(name string) bool { return strings.HasSuffix(name, ".wal") })
}

// keptBallast records the error if there is no space for the next start. On a full disk others take the rest.
func (m *Member) keptBallast(err error) error {
	if errors.Is(err, device.ErrPower) {
		return err
	} else if err != nil {
		m.Env.Tracef("%s   has no space for its next start: %v", m.ID, err)
	}
	if m.Disk.Full {
		m.Env.Count(StartsOnFullDisks)
		m.Disk.Capacity, m.Short = m.Disk.Used(), Shortage{}
	}
	return nil
}
