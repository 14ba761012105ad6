package store

import (
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

// alarmRetry is how often at most an alarm is put into Wanted.
const alarmRetry = time.Second

// CheckQuota reports whether there is space for a request: below the quota and above the disk's
// reserve. If not, it returns etcd's ErrNoSpace and wants the alarm ordered that stops further
// writes on every member. Call it before a request is ordered. Requests that need no space pass. A
// retry is safe after space was made and the alarm was disarmed.
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
	if ok && (cost == 0 || !s.space.isLow()) {
		return nil
	}
	if !ok { // for the disk the watch has it ordered
		s.wantNoSpaceAlarm()
	}
	return etcderrors.ErrNoSpace
}

// wantNoSpaceAlarm has this member's alarm ordered unless it is raised already.
func (s *Store) wantNoSpaceAlarm() {
	if !s.alarmed(pb.AlarmType_NOSPACE) {
		s.wantAlarm(pb.AlarmRequest_ACTIVATE)
	}
}

// wantAlarm wants this member's alarm for space ordered, or its end, unless it was wanted just
// now. If the command is lost, the caller wants it again later.
func (s *Store) wantAlarm(action pb.AlarmRequest_AlarmAction) bool {
	if !s.wanted.alarmDue() {
		return false
	}
	data, err := s.AlarmCommand(action, pb.AlarmType_NOSPACE)
	return err == nil && s.wanted.add(data)
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
