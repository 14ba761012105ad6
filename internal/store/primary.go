package store

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/braidlog/braid/internal/store/leaseclock"
)

// Leases expire by a clock, and only one member's clock may count: that of the primary lessor. It is chosen through
// the log: a member makes a claim by a command, and the newest claim holds. What a primary decides (this lease
// expired, this much of it is left) is a command that names the position of its claim. It has no effect if there is a
// newer claim. So a deposed primary can extend or end nothing, however late it notices. Its checkpoints are numbered.
// A checkpoint has no effect after one with a greater number, so one that was cleared cannot take effect later.
// docs/internals/leases.md explains why renewals are safe.

// ErrNotPrimary is the result of a command that a member ordered which is not the primary lessor
// any more. It is also the answer to a question about time that only the primary can answer. Ask
// the primary.
var ErrNotPrimary = lease.ErrNotPrimary

// ErrOvertaken is the result of a checkpoint that came after one with a greater number.
var ErrOvertaken = errors.New("store: a newer checkpoint was ordered first")

// primaryKey holds the newest claim in the meta bucket.
var primaryKey = []byte("braidLeasePrimary")

// claim is a member's claim to be the primary lessor.
type claim struct {
	member   uint64
	position uint64 // 0: there was no claim yet
	// nonce distinguishes this claim from one that the same member made before it was restarted or demoted, and that is
	// only applied now. Its upper half is recordedMark if the term is recorded.
	nonce uint64
	// number is the greatest of a checkpoint under this claim.
	number uint64
}

// recordedMark is the upper half of the nonce of a claim whose primary records renewals. Members of earlier versions
// do not record; that one of theirs has this half by chance is not to be expected.
const recordedMark = 0x7265636f

func (c claim) recorded() bool { return c.nonce>>32 == recordedMark }

func (c claim) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, c.member)
	b = binary.BigEndian.AppendUint64(b, c.position)
	b = binary.BigEndian.AppendUint64(b, c.nonce)
	if c.number > 0 {
		b = binary.BigEndian.AppendUint64(b, c.number)
	}
	return b
}

// readClaim returns the newest claim that a database holds.
func readClaim(be backend.Backend) (c claim) {
	tx := be.ReadTx()
	tx.RLock()
	defer tx.RUnlock()
	_, values := tx.UnsafeRange(schema.Meta, primaryKey, nil, 1)
	if len(values) == 0 || len(values[0]) != 24 && len(values[0]) != 32 {
		return c
	}
	c.member = binary.BigEndian.Uint64(values[0])
	c.position = binary.BigEndian.Uint64(values[0][8:])
	c.nonce = binary.BigEndian.Uint64(values[0][16:])
	if len(values[0]) == 32 {
		c.number = binary.BigEndian.Uint64(values[0][24:])
	}
	return c
}

// Leases grants, renews and ends leases as far as one member can. It is safe for concurrent use.
type Leases struct {
	member  uint64 // this one
	lessor  *lessor
	rights  *Rights
	keys    *keys
	db      func() *database
	wanted  *wanted
	lg      *zap.Logger
	latch   *latch
	stop    <-chan struct{} // closed when the store is closed
	stopped chan struct{}   // closed when run has ended

	mu sync.Mutex
	// nonce of the claim that this member made last; 0 if it gave up since.
	nonce    uint64
	acting   atomic.Bool   // the newest claim is that one
	primary  atomic.Uint64 // the member that made the newest claim
	position atomic.Uint64 // of the newest claim
	newest   claim         // used by the apply goroutine only
}

func newLeases(s *Store) *Leases {
	return &Leases{
		member: s.opts.MemberID, lessor: s.lessor, rights: s.rights, keys: s.kv, db: s.database, wanted: &s.wanted,
		lg: s.lg, latch: s.latch, stop: s.stop, stopped: make(chan struct{}),
	}
}

// Leases returns the leases.
func (s *Store) Leases() *Leases { return s.leases }

// Claim returns the command that makes this member the primary lessor. A member
// proposes it when it becomes the leader; with several leaders, the first one does.
func (l *Leases) Claim() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nonce = random() | 1
	if l.lessor.followsSoon() {
		l.nonce = recordedMark<<32 | l.nonce&math.MaxUint32
	} else if (claim{nonce: l.nonce}).recorded() {
		l.nonce ^= 1 << 63
	}
	return claimCommand(l.member, l.nonce)
}

func claimCommand(member, nonce uint64) []byte {
	b := binary.BigEndian.AppendUint64([]byte{kindClaim}, member)
	return binary.BigEndian.AppendUint64(b, nonce)
}

// Demote ends this member's term as the primary lessor: it stops to answer for time and to
// end leases. It is always safe, and due when the member stops being the leader.
func (l *Leases) Demote() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nonce = 0
	l.demote()
}

func (l *Leases) demote() {
	if l.acting.Swap(false) {
		l.lessor.demote()
	}
}

// Extend sets [LeaseOptions].Extension while the store is in use: the members have the same one if it follows from the
// log.
func (l *Leases) Extend(by time.Duration) { l.lessor.extend(by) }

// IsPrimary reports whether this member acts as the primary lessor.
func (l *Leases) IsPrimary() bool { return l.acting.Load() }

// Primary returns the member that claimed leases last, 0 if none did.
func (l *Leases) Primary() uint64 { return l.primary.Load() }

func (l *Leases) applyClaim(c claim) {
	l.putClaim(c)
	l.lessor.claimed(c.recorded())
	l.follow(c)
}

func (l *Leases) putClaim(c claim) {
	tx := l.db().be.BatchTx()
	tx.LockInsideApply()
	defer tx.Unlock()
	tx.UnsafePut(schema.Meta, primaryKey, c.encode())
}

// putNumber records the number of the newest checkpoint that took effect.
func (l *Leases) putNumber(number uint64) {
	l.newest.number = number
	l.putClaim(l.newest)
}

// follow notes the newest claim. It makes this member the primary, or ends that.
func (l *Leases) follow(c claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.demote()
	l.newest = c
	l.primary.Store(c.member)
	l.position.Store(c.position)
	if c.member == l.member && c.nonce != 0 && c.nonce == l.nonce {
		l.lessor.promote(c.position, c.number, c.recorded())
		l.acting.Store(true)
	}
}

// run has the commands ordered that the lessor decides on as time passes.
func (l *Leases) run() {
	defer close(l.stopped)
	tick := time.NewTicker(leaseclock.Tick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.stop:
			return
		}
		commands, err := l.lessor.due()
		if err != nil {
			l.lg.Error("leases that are due", zap.Error(err))
		}
		for _, data := range commands {
			_ = l.wanted.add(data) // not accepted: the lessor decides it again
		}
	}
}
