package store

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

// alarmRetry is how often at most an alarm is put into Wanted.
const alarmRetry = time.Second

// CheckQuota reports whether there is room for a request: below the quota and above the
// reserve of the disk. If there is not, it returns etcd's ErrNoSpace and has the alarm
// ordered that stops further writes on every member. To be asked before a request is
// ordered; requests that need no room pass. A retry is safe after space was made and the
// alarm disarmed.
func (s *Store) CheckQuota(r *pb.InternalRaftRequest) error {
	s.mu.RLock()
	quota := s.quota
	s.mu.RUnlock()
	var cost int
	ok := true
	switch {
	case r.Put != nil:
		ok, cost = quota.Available(r.Put), 1
	case r.Txn != nil:
		ok, cost = quota.Available(r.Txn), quota.Cost(r.Txn)
	case r.LeaseGrant != nil:
		ok, cost = quota.Available(r.LeaseGrant), 1
	}
	if ok && (cost == 0 || s.space.enough(s.opts.Dir, s.opts.ReserveBytes)) {
		return nil
	}
	s.wantNoSpaceAlarm()
	return etcderrors.ErrNoSpace
}

// wantNoSpaceAlarm has this member's alarm ordered unless it is raised already.
func (s *Store) wantNoSpaceAlarm() {
	if s.alarmed(pb.AlarmType_NOSPACE) || !s.wanted.alarmDue() {
		return
	}
	data, err := s.AlarmCommand(pb.AlarmRequest_ACTIVATE, pb.AlarmType_NOSPACE)
	if err == nil {
		s.wanted.add(data) // if it is lost, the next refused request comes here again
	}
}

func (w *wanted) alarmDue() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.alarmed) < alarmRetry {
		return false
	}
	w.alarmed = time.Now()
	return true
}

// QuotaBytes returns the size of the database above which writes are refused, negative if
// there is no such size.
func (s *Store) QuotaBytes() int64 { return s.opts.QuotaBytes }

// spaceInterval is how long an answer of the file system is believed.
const spaceInterval = 100 * time.Millisecond

// space remembers what the file system said about free space.
type space struct {
	mu    sync.Mutex
	asked time.Time
	free  int64
}

// enough reports whether more than reserve bytes are free where dir lies.
func (p *space) enough(dir string, reserve int64) bool {
	if reserve < 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.asked) > spaceInterval {
		p.asked = time.Now()
		p.free = freeBytes(dir)
	}
	return p.free > reserve
}

// freeBytes returns how much may still be written where dir lies, and a lot if nobody knows.
func freeBytes(dir string) int64 {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 1 << 62
	}
	return int64(fs.Bavail) * int64(fs.Bsize)
}
