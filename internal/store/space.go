package store

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid/internal/sys"
)

const (
	// spaceInterval is how long an answer of the file system is believed.
	spaceInterval = 100 * time.Millisecond
	// spaceWatch is how often a member checks its own disk.
	spaceWatch = 250 * time.Millisecond
)

// space caches the free space of the file system.
type space struct {
	opts *Options
	lg   *zap.Logger

	mu    sync.Mutex
	asked time.Time
	low   bool

	// marked: the alarm of this member is for its disk, not for its quota, as the file
	// diskAlarm says. Only the watch changes it.
	marked atomic.Bool
}

// isLow reports whether there is less free than must be left, or was and is hardly more.
func (p *space) isLow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.asked) > spaceInterval {
		p.asked = time.Now()
		free, reserve := p.free()
		p.low = lowSpace(p.low, free, reserve)
	}
	return p.low
}

// lowSpace decides whether space is low. Once it is, that ends only with an eighth more than the reserve, so that a
// disk at the limit does not raise an alarm every second.
func lowSpace(low bool, free, reserve int64) bool {
	if reserve < 0 {
		return false
	}
	if low {
		reserve += reserve / 8
	}
	return free <= reserve
}

// free returns how much is free, and how much must be left.
func (p *space) free() (free, reserve int64) {
	reserve = p.opts.ReserveBytes
	if reserve >= 0 && p.opts.Reserve != nil {
		reserve += p.opts.Reserve()
	}
	return freeBytes(p.opts.Dir), reserve
}

// freeBytes returns how much may still be written to the file system of dir, and a large number if that is not known.
func freeBytes(dir string) int64 {
	var fs unix.Statfs_t
	if err := sys.Again(func() error { return unix.Statfs(dir, &fs) }); err != nil {
		return 1 << 62
	}
	return int64(fs.Bavail) * int64(fs.Bsize)
}

// FreeBytes returns how much may still be written to the file system of the database; ok is false if that is not known.
func (s *Store) FreeBytes() (free int64, ok bool) {
	free = freeBytes(s.opts.Dir)
	return free, free < 1<<62
}

// DiskAlarm reports whether this member's alarm NOSPACE, if it is raised, is for its disk and not for its quota.
func (s *Store) DiskAlarm() bool { return s.limits.space.marked.Load() }

// SpaceError: the disk has too little space for something, which was not begun. A retry is safe, and useful when there
// is space.
type SpaceError struct {
	Op         string
	Need, Free int64 // bytes
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("store: no space to %s: that takes %d bytes, %d are free", e.Op, e.Need, e.Free)
}

func (e *SpaceError) Unwrap() error { return unix.ENOSPC }

// spaceView is the input of the decision about a member's alarm.
type spaceView struct {
	low    bool // too little is free on the disk
	over   bool // the database is above its quota
	raised bool // this member's alarm is raised
	marked bool // for its disk
}

// decide returns whether to mark the alarm as the disk's, and whether to raise or disarm it. The
// operator disarms an alarm that the quota raised, as in etcd. The member itself disarms one that
// the disk raised.
func (v spaceView) decide() (marked, raise, disarm bool) {
	switch {
	case v.low && !v.raised:
		return true, true, false
	case v.low:
		return v.marked, false, false
	case v.raised && v.marked && !v.over:
		return true, false, true // until it is not raised any more
	}
	return false, false, false
}

// watch checks this member's own disk. It raises the member's alarm through the log when too
// little is left, and disarms it when there is enough again.
func (l *limits) watch(stop, failed <-chan struct{}) {
	defer close(l.stopped)
	ticker := time.NewTicker(spaceWatch)
	defer ticker.Stop()
	for {
		l.inspect()
		select {
		case <-ticker.C:
		case <-failed:
			return
		case <-stop:
			return
		}
	}
}

func (l *limits) inspect() {
	v := spaceView{low: l.space.isLow(), over: l.overQuota(), raised: l.raised(pb.AlarmType_NOSPACE),
		marked: l.space.marked.Load()}
	marked, raise, disarm := v.decide()
	if marked != v.marked {
		l.space.mark(marked)
	}
	if raise && l.wantAlarm(pb.AlarmRequest_ACTIVATE) {
		free, reserve := l.space.free()
		l.lg.Warn("the disk is nearly full, writes are refused until there is space", zap.Int64("free", free),
			zap.Int64("reserve", reserve))
	}
	if disarm && l.wantAlarm(pb.AlarmRequest_DEACTIVATE) {
		l.lg.Warn("the disk has space again, the alarm is disarmed")
	}
}

func (l *limits) overQuota() bool {
	_, _, db := l.now()
	return l.opts.QuotaBytes > 0 && db.Size() > l.opts.QuotaBytes
}

// diskAlarm is the file that exists if this member's alarm is for its disk. It is empty: it uses no space.
const diskAlarm = "nospace"

// mark records whether the alarm is for the disk.
func (p *space) mark(marked bool) {
	p.marked.Store(marked)
	name := filepath.Join(p.opts.Dir, diskAlarm)
	var err error
	if marked {
		var f *os.File
		if f, err = os.Create(name); err == nil {
			err = f.Close()
		}
	} else if err = os.Remove(name); os.IsNotExist(err) {
		err = nil
	}
	if err != nil { // then the operator has to disarm it after a restart
		p.lg.Warn("cannot note whom the alarm for space is for", zap.Error(err))
	}
}

// open reads what mark recorded.
func (p *space) open() {
	_, err := os.Stat(filepath.Join(p.opts.Dir, diskAlarm))
	p.marked.Store(err == nil)
}
