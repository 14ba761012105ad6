package replica

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
)

// SnapshotStats is how long snapshots took.
type SnapshotStats struct {
	// Save is until a snapshot of this member was durable, Sync the sync of its file.
	Save, Sync Latency
	// Receive is until a snapshot of another member was here, verified and durable, ReceiveSync the sync of its file.
	Receive, ReceiveSync Latency
	// Installing: one of another member was accepted, and is not in effect yet.
	Installing bool
	// Peers are those to which a snapshot was sent, or from which one came, by ID.
	Peers []PeerSnapshots
}

// PeerSnapshots are the snapshots that went to another member, and that came from it.
type PeerSnapshots struct {
	ID             protocol.MemberID
	Sent, Received Transfers
}

// Transfers are snapshots that were sent in one direction.
type Transfers struct {
	Running, Failed uint64
	Done            Latency
}

// transfers counts snapshots in one direction.
type transfers struct {
	running, failed atomic.Int64
	done            latency
}

// run counts a transfer.
func (t *transfers) run(now func() time.Duration, transfer func() error) error {
	t.running.Add(1)
	defer t.running.Add(-1)
	began := now()
	err := transfer()
	if err != nil {
		t.failed.Add(1)
	} else {
		t.done.observe(now() - began)
	}
	return err
}

func (t *transfers) stats() Transfers {
	return Transfers{Running: uint64(t.running.Load()), Failed: uint64(t.failed.Load()), Done: t.done.stats()}
}

// snapshotTimes measures snapshots. It is safe for concurrent use.
type snapshotTimes struct {
	save, sync           latency
	receive, receiveSync latency

	mu    sync.Mutex
	peers map[protocol.MemberID]*[2]transfers // to them, and from them; guarded by mu
}

func (s *snapshotTimes) of(id protocol.MemberID) *[2]transfers {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.peers[id]
	if t == nil {
		if s.peers == nil {
			s.peers = map[protocol.MemberID]*[2]transfers{}
		}
		t = &[2]transfers{}
		s.peers[id] = t
	}
	return t
}

func (s *snapshotTimes) to(id protocol.MemberID) *transfers   { return &s.of(id)[0] }
func (s *snapshotTimes) from(id protocol.MemberID) *transfers { return &s.of(id)[1] }

func (s *snapshotTimes) stats(installing bool) SnapshotStats {
	out := SnapshotStats{Save: s.save.stats(), Sync: s.sync.stats(), Receive: s.receive.stats(),
		ReceiveSync: s.receiveSync.stats(), Installing: installing}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.peers)) {
		p := s.peers[id]
		out.Peers = append(out.Peers, PeerSnapshots{ID: id, Sent: p[0].stats(), Received: p[1].stats()})
	}
	return out
}

// syncSnapshot makes the file of a snapshot durable.
func (r *Replica) syncSnapshot(f vfs.File, received bool) error {
	began, of := r.now(), &r.snapshots.sync
	if received {
		of = &r.snapshots.receiveSync
	}
	err := f.Sync()
	if err == nil {
		of.observe(r.now() - began)
	}
	return err
}
