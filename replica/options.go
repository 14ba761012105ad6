package replica

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/transport"
)

// Options opens a member. All fields are set; the root package knows the defaults.
type Options struct {
	Self    protocol.MemberID
	Cluster uint64
	Dir     string
	FS      vfs.FS
	Members []protocol.Member // the initial cluster, or whom a joining member may dial
	Join    bool

	// Begin is where a new cluster begins: with which instances. It is the same on every
	// member; one that has data goes by that.
	Begin order.Cursor
	// Leaders says who should lead which instance.
	Leaders protocol.Leaders
	// Core makes an instance's core from what the disk held.
	Core func(protocol.InstanceID, protocol.Recovered) (protocol.Core, error)
	// Settings must be equal on every member; they are compared when members connect.
	Settings []Setting

	Heartbeat, ElectionTimeout time.Duration
	Depth                      int // batches under way; 0: adaptive
	MaxBatchBytes              int
	MaxBatchCommands           int // 0: no limit
	MaxCommandBytes            int
	MaxPendingBytes            int64
	SnapshotBytes              int64
	KeepLogBytes               int64 // of log that is kept for members that catch up
	BodyCacheBytes             int64
	ScrubBytesPerSecond        int64 // how fast bodies on disk are verified; 0: not at all
	TrimWhole                  bool  // cut whole copies of coded bodies to a row where that is safe
	SyncApply                  bool  // apply in the event loop (asynchronous apply off)

	Listen []net.Listener // for other members; the replica closes them
	TLS    *tls.Config
	Net    string // link emulation
	Logger *slog.Logger
	Answer func(ctx context.Context, from protocol.MemberID, request []byte) ([]byte, error)
}

// GiveUp is how long a proposal or read is tried before it fails.
func (o *Options) GiveUp() time.Duration { return 5*time.Second + 5*o.ElectionTimeout }

// Setting is one that must be equal on every member.
type Setting = transport.Setting

// settings are all that must be equal.
func (o *Options) settings() []Setting {
	all := slices.Clone(o.Settings)
	if o.Begin.Woven() { // members that begin with others would weave another log
		all = append(all, Setting{Name: "instances", Value: strconv.Itoa(len(o.Begin.Points))})
	}
	return all
}

// identity is what the log's files say of whom they belong to.
func (o *Options) identity() []byte {
	b := append([]byte("braid log "), make([]byte, 16)...)
	binary.BigEndian.PutUint64(b[10:], o.Cluster)
	binary.BigEndian.PutUint64(b[18:], uint64(o.Self))
	return b
}
