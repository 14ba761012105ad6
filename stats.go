package braid

import (
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/member/damage"
	"github.com/braidlog/braid/internal/replica"
)

// LogStats are the counters of a member's log on disk since the member started.
type LogStats struct {
	Submits uint64 // writes that were asked for and are durable, or failed
	Records uint64
	Bytes   uint64 // of records and bodies, without the records' headers
	Syncs   uint64
	// SyncTime is the time spent in writing and syncing. SyncMax is the longest single one of these times.
	SyncTime, SyncMax time.Duration
	// SyncLatency[i] counts the syncs that took less than 2^i microseconds and at least half of that. The last element
	// also counts longer syncs.
	SyncLatency [32]uint64
	// SyncStart is when the sync that runs now began, including its writes; zero if none runs. It shows a stalled disk.
	SyncStart time.Time
	// Waits is how often the log began to wait for space on disk, or for a descriptor.
	Waits uint64
	// QueuedBytes wait until the sync that runs now has ended. PendingBytes are covered by that sync.
	QueuedBytes, PendingBytes int64
	// Failed is why the log is shut; nil: it is not. Full is why it waits for space on disk now; nil: it does not.
	Failed, Full error
}

func logStats(s *replica.LogStats) LogStats {
	out := LogStats{
		Submits: s.Submits, Records: s.Records, Bytes: s.Bytes,
		Syncs: s.Syncs, SyncTime: s.SyncTime, SyncMax: s.SyncMax,
		SyncLatency: s.SyncLatency, SyncStart: s.SyncStart, Waits: s.Waits,
		QueuedBytes: s.QueuedBytes, PendingBytes: s.PendingBytes, Failed: s.Failed,
	}
	if s.Full != nil {
		out.Full = s.Full
	}
	return out
}

// LinkStats are the counters of a member's links to other members since the member started.
type LinkStats struct {
	Peers []PeerStats // by ID
	// EgressBytes and IngressBytes are all bytes of established connections, headers included, handshakes and TLS not.
	EgressBytes, IngressBytes int64
	// Refused counts incoming connections that were refused, or that were not a member's.
	Refused int64
}

// PeerStats counts what was exchanged with one member since it was first known.
type PeerStats struct {
	ID        MemberID
	Connected bool      // all streams that were used are connected
	Since     time.Time // when Connected changed, or the member was first known
	Heard     time.Time // when the last bytes from the member had been read, pings too; zero: there were none
	// Bytes and frames of messages, requests and snapshots together.
	BytesIn, BytesOut, FramesIn, FramesOut int64
	QueueBytes                             int64 // waiting or being written, all streams
	Drops                                  int64 // dropped frames: queue full, too large, or the connection broke
	Connects                               int64 // outgoing connections made
	Breaks                                 int64 // how often Connected ended
	Failures                               int64 // attempts to connect that failed
	// RoundTrip is the shortest of the last five round trips to the member, which are measured once a second unless the
	// setting fit is off; 0: none is known.
	RoundTrip time.Duration
	LastError string
	Addrs     []string // where it is dialed
}

func linkStats(s *replica.LinkStats, trips []fit.Trip) LinkStats {
	out := LinkStats{
		Peers:       make([]PeerStats, len(s.Peers)),
		EgressBytes: s.EgressBytes, IngressBytes: s.IngressBytes, Refused: s.Refused,
	}
	for i := range s.Peers {
		p := &s.Peers[i]
		out.Peers[i] = PeerStats{
			ID: MemberID(p.ID), Connected: p.Connected, Since: p.Since, Heard: p.Heard,
			BytesIn: p.BytesIn, BytesOut: p.BytesOut,
			FramesIn: p.FramesIn, FramesOut: p.FramesOut, QueueBytes: p.QueueBytes,
			Drops: p.Drops, Connects: p.Connects, Breaks: p.Breaks, Failures: p.Failures,
			LastError: p.LastError, Addrs: p.Addrs,
		}
		for _, t := range trips {
			if t.To == out.Peers[i].ID {
				out.Peers[i].RoundTrip = t.Time
			}
		}
	}
	return out
}

// BodyStats is the member's view of the bodies of commands.
type BodyStats struct {
	// Held is how many bodies are held here, whole or as fragments.
	Held int
	// LiveBytes are the bytes of the bodies held here, in the form that is held. TotalBytes are the bytes of the files
	// with bodies.
	LiveBytes, TotalBytes int64
	// Missing is how many bodies are known to be missing here. They are being restored.
	Missing int
	// Short is how many bodies are held as fragments here but must be whole, because the fragments would be too few.
	// They are being made whole.
	Short int
	// Fetched counts the bodies that were made whole from other members' fragments, Served the fragments that were sent
	// to others, Corrupt the bodies that were found damaged on disk, Repaired the bodies that were restored, Trimmed
	// the whole bodies that were replaced by a fragment.
	Fetched, Served, Corrupt, Repaired, Trimmed uint64
	// Failing is why a missing body could not be restored. It is nil if the last attempt succeeded or no body is
	// missing.
	Failing error
}

// DiskStats is the member's view of damage to its log and its snapshots. [BodyStats] has the same of bodies.
type DiskStats struct {
	// Rounds is how often everything on disk was read since the member started. Scrubbed is how many bytes of the log
	// and of snapshots were read.
	Rounds, Scrubbed uint64
	// Damaged counts the places that were found damaged. Mended counts those that are no longer damaged, or that hold
	// nothing needed any more.
	Damaged, Mended uint64
	// Failing is what is damaged and still needed; nil: no such damage is known.
	Failing error
}

// StageStats is how long the proposals and reads of a member took, stage by stage, since it started: proposals by
// batches, reads by groups that were answered together.
type StageStats struct {
	// Queue is until the first command's batch was given to the protocol, Replicate from then until it was committed,
	// Order until the state machine began with it, and Apply until it returned. Append is from when something was to be
	// written to the log until it was on disk, also what other members proposed. It is a part of Replicate if this
	// member leads.
	Queue, Append, Replicate, Order, Apply Latency
	// ReadQueue is until the protocol was asked up to where the state must be applied, ReadConfirm until that was known
	// of all instances, ReadWait until this member had applied so far.
	ReadQueue, ReadConfirm, ReadWait Latency
}

// Latency is a distribution of times.
//
//	Counts [21]uint64    // by LatencyBound: element i counts times up to the i-th bound and above the one before
//	Sum    time.Duration // of all
type Latency = replica.Latency

// LatencyBound is the upper bound of an element of [Latency]'s Counts: 100 µs, and twice as much for each next one. The
// last element has none.
func LatencyBound(i int) time.Duration { return replica.LatencyBound(i) }

// SnapshotStats is how long snapshots took since the member started.
//
//	Save, Sync           Latency         // until a snapshot of this member was durable; the sync of its file
//	Receive, ReceiveSync Latency         // until one of another member was here, verified and durable; the same
//	Installing           bool            // one of another member was accepted, and is not in effect yet
//	Peers                []PeerSnapshots // those to which one was sent, or from which one came, by ID
type SnapshotStats = replica.SnapshotStats

// PeerSnapshots are the snapshots that went to another member, and that came from it. See [SnapshotStats].
//
//	ID             MemberID
//	Sent, Received Transfers
type PeerSnapshots = replica.PeerSnapshots

// Transfers are snapshots that were sent in one direction.
//
//	Running, Failed uint64
//	Done            Latency
type Transfers = replica.Transfers

// The conversions hold the declarations together: a field more is an error of the compiler.
var (
	_ = BodyStats(replica.BodyStats{})
	_ = DiskStats(damage.DiskStats{})
	_ = StageStats(replica.StageStats{})
)
