package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	"golang.org/x/crypto/bcrypt"

	"go.etcd.io/etcd/server/v3/storage"
)

// Options opens a store. The zero value of every optional field means its default.
type Options struct {
	// Dir holds the database file, "db". It is created if needed. Required.
	Dir string
	// ClusterID and MemberID appear in metrics and in alarms. Required.
	ClusterID, MemberID uint64
	// Logger receives etcd's own messages. Default: none.
	Logger *zap.Logger

	// QuotaBytes is the size of the database above which writes are refused. 0: 2 GiB;
	// negative: no limit.
	QuotaBytes int64
	// ReserveBytes of disk space must stay free, and as many more as Reserve says (nil: none).
	// With less this member raises its alarm, and writes are refused as above the quota, before
	// the disk is full. 0: 32 MiB; negative: no limit. See [SpaceFor].
	ReserveBytes int64
	Reserve      func() int64

	Leases LeaseOptions

	// AuthToken chooses the tokens as etcd's --auth-token does: "simple" (default) or
	// "jwt,pub-key=…,priv-key=…,sign-method=…".
	AuthToken string
	// AuthTokenTTL is how long a simple token that is not used stays valid. Default 5 min.
	AuthTokenTTL time.Duration
	// BcryptCost of password hashes, 4 to 31. Default 10.
	BcryptCost int
	// Client names where a call comes from. Passwords of one client are checked in turn with those of others. nil: all
	// are of one.
	Client func(context.Context) string
	// ClientCertAuth makes the common name of a client's certificate its user.
	ClientCertAuth bool

	// BackendBatchLimit (writes) and BackendBatchInterval bound what is not yet in the database file; see [Store.Sync]. A
	// larger limit makes writes a little faster and reads between writes slower, since each copies the uncommitted part.
	// Defaults 1000 and 100 ms.
	BackendBatchLimit    int
	BackendBatchInterval time.Duration
	// LockMemory keeps the database's pages from being swapped out.
	LockMemory bool
	// ArrayFreelist keeps the free pages of the database in an array, not in a map.
	ArrayFreelist bool
	// CompactionBatchLimit (revisions) and CompactionSleepInterval pace the removal of old
	// revisions. Defaults 1000 and 10 ms.
	CompactionBatchLimit    int
	CompactionSleepInterval time.Duration
	// Repairable: if the database is damaged, an empty one is opened, and nothing is served or
	// applied until Restore; see [Store.Damage]. Otherwise opening fails with a [DamageError].
	Repairable bool
	// Bodies keeps large values. Without it every value is in the database.
	Bodies Bodies
	// LargeValueBytes is the size from which on values are kept in Bodies. It may differ
	// between members. 0: 16 KiB; negative: only values that begin like a record are; at
	// least 1 KiB.
	LargeValueBytes int
	// ResponseBytes bounds the large values in one answer, and in all that are being made
	// ready. Default 256 MiB.
	ResponseBytes int64
	// ReleaseGrace is how long a large value is kept after its revision was compacted, for clients that read that
	// revision before. Default 1 min.
	ReleaseGrace time.Duration
	// WarnApplyDuration is the time above which applying a command is logged. Default 100 ms.
	WarnApplyDuration time.Duration

	// NoSync leaves out every fsync. A crash of the machine may then lose the store.
	NoSync bool

	// OnFatal is called once, from any goroutine, when the store cannot continue because its disk failed. The process
	// should end soon: calls that need the database wait forever. Without it, a failure outside of Apply panics.
	OnFatal func(error)
}

// path is that of the database file.
func (o *Options) path() string { return filepath.Join(o.Dir, "db") }

// DefaultLargeValueBytes is that of Options.LargeValueBytes.
const DefaultLargeValueBytes = 16 << 10

// LeaseOptions are the times of leases. The zero value of every field means its default.
type LeaseOptions struct {
	// MinTTL is the shortest lease, in seconds; shorter ones are lengthened. It must
	// be equal on every member. Default 1.
	MinTTL int64
	// Extension is added to every lease when this member becomes the primary lessor, for the time in which no member
	// could renew them. A renewal whose confirmation took longer is answered with less than its full time. So
	// Extension must be equal on every member. Default 1 s.
	Extension time.Duration
	// CheckpointInterval is how often the primary lessor orders the rest of long leases, so that a new primary does
	// not give them their full time again. Default 5 min.
	CheckpointInterval time.Duration
	// RetryInterval is how often an expired lease that is still there is reported
	// again. Default 3 s.
	RetryInterval time.Duration
}

const defaultBatchLimit = 1000

// setDefaults sets defaults and reports invalid options.
func (o *Options) setDefaults() error {
	switch {
	case o.Dir == "":
		return errors.New("store: Options.Dir is empty")
	case o.ClusterID == 0 || o.MemberID == 0:
		return errors.New("store: Options.ClusterID and Options.MemberID must not be 0")
	case o.BcryptCost != 0 && (o.BcryptCost < bcrypt.MinCost || o.BcryptCost > bcrypt.MaxCost):
		return fmt.Errorf("store: Options.BcryptCost is %d, must be %d to %d", o.BcryptCost, bcrypt.MinCost, bcrypt.MaxCost)
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Client == nil {
		o.Client = func(context.Context) string { return "" }
	}
	orDefault(&o.QuotaBytes, storage.DefaultQuotaBytes)
	orDefault(&o.ReserveBytes, 32<<20)
	orDefault(&o.Leases.MinTTL, 1)
	orDefault(&o.Leases.Extension, time.Second)
	orDefault(&o.Leases.CheckpointInterval, 5*time.Minute)
	orDefault(&o.Leases.RetryInterval, 3*time.Second)
	orDefault(&o.AuthToken, "simple")
	orDefault(&o.AuthTokenTTL, 5*time.Minute)
	orDefault(&o.BcryptCost, bcrypt.DefaultCost)
	orDefault(&o.BackendBatchLimit, defaultBatchLimit)
	orDefault(&o.BackendBatchInterval, 100*time.Millisecond)
	orDefault(&o.WarnApplyDuration, 100*time.Millisecond)
	orDefault(&o.LargeValueBytes, DefaultLargeValueBytes)
	orDefault(&o.ResponseBytes, 256<<20)
	orDefault(&o.ReleaseGrace, time.Minute)
	if o.LargeValueBytes > 0 && o.LargeValueBytes < smallestRecord {
		return fmt.Errorf("store: Options.LargeValueBytes is %d, must be at least %d", o.LargeValueBytes, smallestRecord)
	}
	if o.ResponseBytes < 0 || o.ReleaseGrace < 0 {
		return errors.New("store: Options.ResponseBytes and Options.ReleaseGrace must not be negative")
	}
	if o.Bodies == nil || o.LargeValueBytes < 0 {
		o.LargeValueBytes = 0
	}
	return nil
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
