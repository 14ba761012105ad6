package store

import (
	"sync"
	"time"

	"go.uber.org/zap"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
	"go.etcd.io/etcd/server/v3/storage"
	"go.etcd.io/etcd/server/v3/storage/backend"
)

// alarmRetry is how often at most an alarm is put into Wanted.
const alarmRetry = time.Second

// limits are the alarms that are raised, and what raises this member's alarm NOSPACE: the quota of the database and the
// reserve of the disk. It is safe for concurrent use.
type limits struct {
	opts    *Options
	lg      *zap.Logger
	wanted  *wanted
	space   space
	stopped chan struct{} // closed when watch has ended

	// mu guards the fields that Restore replaces. The apply goroutine, which does, reads them without it.
	mu      sync.RWMutex
	alarms  *alarms
	quota   storage.Quota
	weighed backend.Backend // the database with its bodies
}

// replace makes the limits those of another database.
func (l *limits) replace(a *alarms, db backend.Backend) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alarms, l.weighed = a, db
	l.quota = storage.NewBackendQuota(l.lg, l.opts.QuotaBytes, db, "store")
}

func (l *limits) now() (*alarms, storage.Quota, backend.Backend) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.alarms, l.quota, l.weighed
}

// CheckQuota reports whether there is space for a request: below the quota and above the disk's reserve. If not, it
// returns etcd's ErrNoSpace and has the alarm ordered that stops further writes on every member. Call it before a
// request is ordered. Requests that need no space pass. A retry is safe after space was made and the alarm was
// disarmed. A [PrefixQuotaError] refuses what would use more than the quota of a prefix; applying checks that again.
func (s *Store) CheckQuota(r *pb.InternalRaftRequest) error {
	if err := s.checkPrefixes(r); err != nil {
		return err
	}
	return s.CheckSpace(r)
}

// CheckSpace is CheckQuota without the quotas of prefixes: whether a request that others precede fits into those is not
// known before it is applied.
func (s *Store) CheckSpace(r *pb.InternalRaftRequest) error { return s.limits.check(r) }

func (l *limits) check(r *pb.InternalRaftRequest) error {
	_, quota, _ := l.now()
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
	if ok && (cost == 0 || !l.space.isLow()) {
		return nil
	}
	if !ok { // for the disk the watch has it ordered
		l.wantNoSpace()
	}
	return etcderrors.ErrNoSpace
}

// wantNoSpace has this member's alarm ordered unless it is raised already.
func (l *limits) wantNoSpace() {
	if !l.raised(pb.AlarmType_NOSPACE) {
		l.wantAlarm(pb.AlarmRequest_ACTIVATE)
	}
}

// noSpaceFound is wantNoSpace while a request is applied. If another member's alarm is raised, it is that member's disk
// that may be full.
func (l *limits) noSpaceFound() {
	if len(l.alarms.get(pb.AlarmType_NOSPACE)) == 0 {
		l.wantNoSpace()
	}
}

// wantAlarm has this member's alarm for space ordered, or its end, unless that was done just now. If the command is
// lost, the caller repeats it later.
func (l *limits) wantAlarm(action pb.AlarmRequest_AlarmAction) bool {
	if !l.wanted.alarmDue() {
		return false
	}
	data, err := alarmCommand(l.opts.MemberID, action, pb.AlarmType_NOSPACE)
	return err == nil && l.wanted.add(data)
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
