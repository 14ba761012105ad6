package replica

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"log/slog"
	"net"
	"time"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/member/damage"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
)

// Options opens a member. The root package sets the fields and knows the defaults.
type Options struct {
	Self    protocol.MemberID
	Cluster uint64
	Dir     string
	FS      vfs.FS
	Members []protocol.Member // the initial cluster, or the members that a joining member may dial
	Join    bool

	// Begin says with which instances a new cluster begins. It is the same on every member. A member
	// that has data begins from its data instead.
	Begin order.Cursor
	// Leaders says who should lead which instance.
	Leaders protocol.Leaders
	// Program is what instances that begin under a profile have of their core. The error is a [*protocol.ProfileError].
	Program func(*protocol.Profile) (*Program, error)
	// Cells: instances use cells from the beginning of the log on.
	Cells bool
	// Epochs tells the settings of the epochs, which a directory keeps; "": there are none.
	Epochs string
	// Quorums tells which quorums the cluster has, which a directory keeps too.
	Quorums string
	// Kind is what the log is, which a directory keeps; zero: that is not compared. Guess finds it out in a directory
	// of an earlier version.
	Kind  member.LogKind
	Guess func() member.KindGuess
	// Profiled: the cluster that the member joins says that its log has a profile.
	Profiled bool
	// Sealed: it says that its log had a seal.
	Sealed bool
	// Settings are those that members share. Fixed has those that depend on no order.
	Settings cluster.SharedSettings

	// Fitting is how the log is fitted to its load; nil: it is not.
	Fitting *Fitting

	// Heartbeat, ElectionTimeout, Leaders and TrimWhole have no effect once the log has a profile.
	Heartbeat, ElectionTimeout time.Duration
	Depth                      int // batches in flight; 0: adaptive
	MaxBatchBytes              int
	MaxBatchCommands           int // 0: no limit
	MaxCommandBytes            int
	MaxPendingBytes            int64
	SnapshotBytes              int64
	KeepLogBytes               int64 // of log that is kept for members that catch up
	BodyCacheBytes             int64
	ScrubBytesPerSecond        int64 // how fast everything on disk is read and verified; 0: not at all
	TrimWhole                  bool  // replace whole copies of coded bodies by a row where that is safe
	SyncApply                  bool  // the event loop waits until the state machine has applied

	Listen []net.Listener // for other members; the replica closes them
	Dial   transport.Dial // to other members; nil: over TCP
	TLS    *tls.Config
	// See braid.Options.PeerTLSByURL and PeerTLSBinds.
	TLSByURL, TLSBinds bool
	Net                string // link emulation
	Logger             *slog.Logger
	Answer             func(ctx context.Context, from protocol.MemberID, request []byte) ([]byte, error)

	// Tests put something else in the place of the links and of chance. nil: transport.New, and the
	// system's randomness.
	newLinks func(transport.Options) (links, error)
	chance   func() uint64
}

// outside fills in what tests did not replace.
func (o *Options) outside() {
	if o.newLinks == nil {
		o.newLinks = func(t transport.Options) (links, error) { return transport.New(t) }
	}
	if o.chance == nil {
		o.chance = systemChance
	}
}

// Setting is a setting that members compare, and SharedSettings are all of them.
type (
	Setting        = transport.Setting
	SharedSettings = cluster.SharedSettings
	Overruled      = cluster.Overruled
)

// identity is what the log's files say about the cluster and the member that they belong to.
func (o *Options) identity() []byte {
	b := append([]byte("braid log "), make([]byte, 16)...)
	binary.BigEndian.PutUint64(b[10:], o.Cluster)
	binary.BigEndian.PutUint64(b[18:], uint64(o.Self))
	return b
}

// Born is how a log began.
type Born = datadir.Born

// BornAs is [datadir.BornAs].
func BornAs(fs vfs.FS, dir string, flags member.LogKind, g member.KindGuess, unnamed bool) (Born, error) {
	return datadir.BornAs(fs, dir, flags, g, unnamed)
}

// CheckDir returns why Open would refuse the member's directory before it changes anything; nil: it would not, or there
// is none yet.
func (o *Options) CheckDir() error {
	c := o.directory(nil)
	return c.Check()
}

// directory says what is opened of the member's directory.
func (o *Options) directory(sm member.StateMachine) datadir.Config {
	members := o.Members
	if o.Join {
		members = nil
	}
	segment := damage.SegmentBytes(o.SnapshotBytes)
	return datadir.Config{
		FS: o.FS, Dir: o.Dir, Cluster: o.Cluster, Self: o.Self, Chance: o.chance, Begin: o.Begin, Members: members,
		Profile: o.Settings.First(), Join: o.Join, Machine: sm,
		Identity: o.identity(), Cells: o.Cells, Accepted: o.accepted, Derive: o.derive, Epochs: o.Epochs,
		Quorums: o.Quorums, Kind: o.Kind, Guess: o.Guess, Profiled: o.Profiled, Sealed: o.Sealed, LogSegment: segment,
		BodySegment: segment,
	}
}

// Begun reports whether a member's directory has been begun, so that it knows its members.
func Begun(fs vfs.FS, dir string) bool { return datadir.Begun(fs, dir) }

// Founded is [datadir.Founded].
func Founded(fs vfs.FS, dir string) bool { return datadir.Founded(fs, dir) }

// OwnerOf is [datadir.OwnerOf].
func OwnerOf(fs vfs.FS, dir string) (self protocol.MemberID, cluster uint64, err error) {
	return datadir.OwnerOf(fs, dir)
}
