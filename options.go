package braid

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Options opens a member. The zero value of an optional field means its default.
type Options struct {
	Self    MemberID // required, see [MemberIDOf]
	Cluster uint64   // cluster id, required, see [ClusterIDOf]
	Dir     string   // directory for log and snapshots, required; made if missing
	// Members is the initial cluster, with an id and peer URLs (http://host:port or https://host:port) each. If Dir holds
	// a log, or with Join, they only say whom to dial first, and need not include Self. They are dialed until a member
	// answers elsewhere, or a change of the membership brings another URL. A member tells the others its own URLs from
	// here, and they dial it there although the membership has others. Status.Links says where each member is dialed.
	Members []Member
	Join    bool // begin empty and wait to be added by a running cluster
	// Listen are the addresses (host:port) to accept other members on, one per network card. A cluster of one needs none;
	// it is required where Members has others. Listeners are open listeners to use instead; the node closes them.
	Listen    []string
	Listeners []net.Listener
	TLS       TLS // between members

	Heartbeat       time.Duration // default 100 ms
	ElectionTimeout time.Duration // default 1 s; ≥ 3 heartbeats; the same on all members
	// LeaseReads answers reads without a round trip, by clocks of bounded drift. It must be the
	// same on all members. docs/internals/raft.md says what clocks are assumed to do.
	LeaseReads bool

	// Protocol is one of [Protocols], by default "raft". It must be the same on all members. It
	// brings its own Order and Placement, which are the defaults of these options.
	Protocol string
	// Settings are the protocol's own; by default it has its defaults. docs/using/settings.md says which of them
	// must be the same on all members.
	Settings Settings

	// Order says how the global log is made. "single" is one instance.
	// "niagara" merges several instances into one log (docs/using/niagara.md). Each has an event loop
	// and connections of its own, so that more than one core and network card replicate. Order
	// must be the same on all members. Instances (default 4) is the number with which a new
	// cluster begins. It must be the same on all its first members. A member that joins later is
	// told the number by the others (Status.Begun), and a member that has data finds it there.
	// [Node.Reshape] changes the number of a running cluster. "keyed" is for comparison (protocol
	// "multi-raft" or "wpaxos"): each instance is a group of keys with an order of its own, see [NewGroups]. There are
	// as many as Members, or with "wpaxos" 16, if Instances does not say. Their number never changes.
	Order     string
	Instances int
	// Leaders says who should lead the instances. With "together" one member leads all, so a crash of any other one stops
	// nothing. With "spread" each member leads some, so each takes its own clients' writes and all network cards send. The
	// default is "spread" with Placement "code", where bytes count most, or Order "keyed", and else "together". With
	// "begin", the only one with protocol "wpaxos", each member leads some at first, and no one is preferred later. It
	// must be the same on all members.
	Leaders string
	// Placement says what members keep of the bodies of commands ([Node.ProposeBody]). With "copy"
	// every member keeps everything. With "code" each member keeps a fragment, as in
	// CRaft (docs/using/craft.md). That takes a quarter to a half of the bytes on disks and links, and
	// tolerates the same crashes. It must be the same on all members.
	Placement string
	// CodeK is how many fragments make a body whole, at most. 0 means: as many as possible while a
	// write need not wait for the slowest member. ExtraWhole is how many members more than needed
	// get whole bodies where fragments cannot be used.
	CodeK, ExtraWhole int
	// TrimWhole cuts this member's whole copies of coded bodies down to its fragment once
	// enough other members hold theirs.
	TrimWhole bool

	Limits     Limits     // bounds of memory, disk and time
	Experiment Experiment // measurements only

	// FS has the files of Dir; default [OSFS]. See [FS] for what the log relies on.
	FS     FS
	Logger *slog.Logger // default slog.Default()
	// Answer serves the requests that another member's program sent with [Node.Ask].
	Answer func(ctx context.Context, from MemberID, request []byte) ([]byte, error)
}

// TLS says how members reach each other. The zero value is plain TCP.
type TLS struct {
	Config *tls.Config // mutual TLS; nil: plain TCP
	// ByURL is for the time in which a running cluster changes from plain TCP to TLS, or back
	// (docs/using/operations.md). Members whose peer URL begins with http:// are dialed without TLS although there is a
	// Config, and this member takes links with and without: links are not authenticated then.
	ByURL bool
	// Binds demands that the certificate of a member that connects names the host of one of its peer URLs. Without it,
	// any certificate that Config accepts may be any member's when it connects; when this member connects to another one,
	// the host is always compared.
	Binds bool
}

// Limits bound what a member uses. The zero value of a field means its default.
type Limits struct {
	CommandBytes  int // a command and its body; default 32 MiB
	PendingBytes  int // proposals of this member that wait or are in progress; default 256 MiB
	SnapshotBytes int // log bytes between snapshots; default 256 MiB
	// KeepLogBytes bounds the log that is kept for members that catch up, also while they are sent a snapshot; default 4
	// SnapshotBytes. A member that is further behind is sent a snapshot again.
	KeepLogBytes   int
	BodyCacheBytes int // whole bodies kept in memory for reading; default 64 MiB
	// ScrubBytesPerSecond is how fast the log, the snapshots and the bodies on disk are read to find damage, which is
	// repaired; default 4 MiB, negative: never.
	ScrubBytesPerSecond int
}

// Experiment turns off or fixes single optimisations, to measure what they bring (docs/internals/raft.md,
// "Replication"). The zero value is for production: it needs no tuning.
type Experiment struct {
	NoBatching       bool // one command per entry, one entry per frame
	NoPipeline       bool // one frame in progress per follower
	NoParallelAppend bool // the leader writes to its disk before it sends
	NoAsyncApply     bool // replication waits for the state machine
	MaxBatchBytes    int  // payload bytes at which an entry is full; default 1 MiB
	MaxBatchCommands int  // commands at which an entry is full; default no limit
	MaxFrameBytes    int  // payload bytes of one frame to a follower; default 1 MiB
	PipelineDepth    int  // frames and batches in progress; default adaptive
	// Net emulates links, as the flag --net says (docs/using/operations.md). It finds members by the names that they have
	// in Members, and in the membership later. [Node.SetNet] changes it.
	Net string
}

// What Options.Placement can be. "rs" is RS-Raft, with which the paper compares CRaft. It is there
// for comparison only: it always keeps fragments, so it needs larger quorums and survives fewer
// crashes (one of five, two of seven). Its members never change.
const (
	PlacementCopy = string(protocol.PlacementCopy)
	PlacementCode = string(protocol.PlacementCode)
	PlacementRS   = string(protocol.PlacementRS)
)

// What Options.Order can be.
const (
	OrderSingle  = string(order.KindSingle)
	OrderNiagara = string(order.KindNiagara)
	OrderKeyed   = string(order.KindKeyed)
)

// Protocols returns what Options.Protocol can be, those included that are for comparison only.
func Protocols() []string { return registry.Names() }

// defaultProtocol is Options.Protocol if nothing else asks for another.
const defaultProtocol = "raft"

// What Options.Leaders can be.
const (
	LeadersTogether = "together"
	LeadersSpread   = "spread"
	LeadersBegin    = "begin"
)

// MaxInstances bounds Options.Instances.
const MaxInstances = order.MaxInstances

// defaultInstances is Options.Instances with OrderNiagara, as many as the paper's network
// cards.
const defaultInstances = 4

// roamingInstances is Options.Instances by default where instances move to who uses them. Each has some of the keys,
// which move together, so there are more than members.
const roamingInstances = 16

// maxCodeK bounds Options.CodeK: more fragments than members make no sense.
const maxCodeK = 64

// OptionError is an option that makes no sense. Nothing was started. A retry with it gets the same answer.
type OptionError struct{ Option, Detail string }

func (e *OptionError) Error() string { return "braid: option " + e.Option + ": " + e.Detail }

// complete checks the options and fills in the defaults.
func (o *Options) complete() error {
	o.Heartbeat = cmp.Or(o.Heartbeat, 100*time.Millisecond)
	o.ElectionTimeout = cmp.Or(o.ElectionTimeout, time.Second)
	o.Experiment.MaxBatchBytes = cmp.Or(o.Experiment.MaxBatchBytes, 1<<20)
	o.Experiment.MaxFrameBytes = cmp.Or(o.Experiment.MaxFrameBytes, 1<<20)
	o.Limits.CommandBytes = cmp.Or(o.Limits.CommandBytes, 32<<20)
	o.Limits.PendingBytes = cmp.Or(o.Limits.PendingBytes, 256<<20)
	o.Limits.SnapshotBytes = cmp.Or(o.Limits.SnapshotBytes, 256<<20)
	o.Limits.KeepLogBytes = cmp.Or(o.Limits.KeepLogBytes, 4*o.Limits.SnapshotBytes)
	if err := o.choose(); err != nil {
		return err
	}
	o.weave()
	if o.Placement == PlacementRS {
		o.CodeK = cmp.Or(o.CodeK, registry.RSFragments)
	}
	o.Limits.BodyCacheBytes = cmp.Or(o.Limits.BodyCacheBytes, 64<<20)
	o.Limits.ScrubBytesPerSecond = cmp.Or(o.Limits.ScrubBytesPerSecond, 4<<20)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.FS == nil {
		o.FS = vfs.OS
	}
	o.Members = slices.Clone(o.Members) // callers may share one list between members
	slices.SortFunc(o.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return o.check()
}

// choose completes protocol, order and placement. Placement "rs" alone asks for its protocol.
func (o *Options) choose() error {
	if o.Protocol == "" && o.Placement == PlacementRS {
		o.Protocol = "rs-raft"
	}
	o.Protocol = cmp.Or(o.Protocol, defaultProtocol)
	p := registry.Find(o.Protocol)
	if p == nil {
		return &OptionError{"Protocol", fmt.Sprintf("%q is none of %s", o.Protocol, strings.Join(Protocols(), ", "))}
	}
	kind, err := p.Order(order.Kind(o.Order))
	if err != nil {
		return &OptionError{"Order", err.Error()}
	}
	place, err := p.Placement(protocol.Placement(o.Placement))
	if err != nil {
		return &OptionError{"Placement", err.Error()}
	}
	if o.Settings, err = p.Complete(o.Settings); err != nil {
		return &OptionError{"Settings", err.Error()}
	}
	o.Order, o.Placement = string(kind), string(place)
	return nil
}

// weave fills in what concerns the order of instances.
func (o *Options) weave() {
	switch o.Order {
	case OrderKeyed:
		if o.Instances = o.Groups(); o.roams() {
			o.Leaders = cmp.Or(o.Leaders, LeadersBegin)
		}
	case OrderNiagara:
		o.Instances = cmp.Or(o.Instances, defaultInstances)
	default:
		return
	}
	if o.Leaders == "" && (o.Placement == PlacementCode || o.Order == OrderKeyed) {
		o.Leaders = LeadersSpread
	}
	o.Leaders = cmp.Or(o.Leaders, LeadersTogether)
}

// settings returns what must be equal on all members, by the names of the command's flags. Members
// compare them when they connect. docs/using/settings.md says for each setting why it is compared or
// why not.
func (o *Options) settings() []replica.Setting {
	all := []replica.Setting{
		{Name: "protocol", Value: "braid/1 " + registry.Find(o.Protocol).Core.Name},
		{Name: "order", Value: o.Order},
		{Name: "leaders", Value: o.Leaders},
		{Name: "placement", Value: o.Placement},
		{Name: "code-k", Value: strconv.Itoa(o.CodeK)},
		{Name: "election-timeout", Value: o.ElectionTimeout.String()},
		{Name: "lease-reads", Value: strconv.FormatBool(o.LeaseReads)},
	}
	for _, s := range registry.Find(o.Protocol).Core.Settings.Agreed(o.Settings) {
		all = append(all, replica.Setting{Name: s[0], Value: s[1]})
	}
	return all
}

// logKind is what the log is, which never changes.
func (o *Options) logKind() LogKind {
	k := LogKind{Core: registry.Find(o.Protocol).Core.Name, Order: order.Kind(o.Order)}
	if registry.Find(o.Protocol).Quorums != nil {
		k.Fragments = o.CodeK
	}
	return k
}

// CheckDir reports why [Open] would refuse Dir because of what is in it: a [*LogKindError], a [*DirError] or a
// [*ForgottenError]. It only reads, so that a program can ask before it changes anything alongside Dir, and also where
// Dir does not exist yet. It may be called while a member runs there.
func (o Options) CheckDir() error {
	if err := o.complete(); err != nil {
		return err
	}
	r := o.replica(nil)
	return r.CheckDir()
}

// quorums are those of the settings, once complete has seen them.
func (o *Options) quorums() quorum.System { return quorum.Setting.In(o.Settings) }

// Groups is how many groups of keys there are with these options, and [NewGroups] is to be given; 0: there is one order
// of all keys. For a member that joins it is Instances. The options need not be complete.
func (o *Options) Groups() int {
	p := registry.Find(cmp.Or(o.Protocol, defaultProtocol))
	if p == nil || !p.Keyed(order.Kind(o.Order)) {
		return 0
	}
	if p.Core.Roams {
		return cmp.Or(o.Instances, roamingInstances)
	}
	return cmp.Or(o.Instances, len(o.Members))
}

// roams reports whether an instance's leader hands it over to who uses it.
func (o *Options) roams() bool { return registry.Find(o.Protocol).Core.Roams }

// epochs tells the settings of the epochs; "": there are none.
func (o *Options) epochs() string {
	return registry.Find(o.Protocol).Core.Settings.Text("epochs", o.Settings)
}

// checkMachine refuses a state machine that the protocol cannot drive.
func (o *Options) checkMachine(sm StateMachine) error {
	if _, durable := sm.(DurableStateMachine); durable && registry.Find(o.Protocol).Core.Judged.ByKey {
		return &OptionError{"Protocol", fmt.Sprintf("%s orders only commands with a key in common, and drives no state machine that keeps its state on disk", o.Protocol)}
	}
	return nil
}

func (o *Options) checkOrder() error {
	several := o.Order != OrderSingle
	switch {
	case !several && (o.Instances > 1 || o.Leaders != ""):
		return &OptionError{"Order", fmt.Sprintf("%q has one instance and one leader", o.Order)}
	case o.Instances < 0 || o.Instances > MaxInstances:
		return &OptionError{"Instances", fmt.Sprintf("%d is not in 1…%d", o.Instances, MaxInstances)}
	case several && o.Instances == 0:
		return &OptionError{"Instances", "is required where there are no Members"}
	case several && o.roams():
		if o.Leaders != LeadersBegin {
			return &OptionError{"Leaders", fmt.Sprintf("%q: with %s instances move, and there is only %q", o.Leaders, o.Protocol, LeadersBegin)}
		}
	case several && o.Leaders != LeadersTogether && o.Leaders != LeadersSpread:
		return &OptionError{"Leaders", fmt.Sprintf("%q is neither %q nor %q", o.Leaders, LeadersTogether, LeadersSpread)}
	}
	return nil
}

func (o *Options) check() error {
	if err := o.checkOrder(); err != nil {
		return err
	}
	switch {
	case o.Self == 0:
		return &OptionError{"Self", "is required"}
	case o.Cluster == 0:
		return &OptionError{"Cluster", "is required"}
	case o.Dir == "":
		return &OptionError{"Dir", "is required"}
	case o.Heartbeat <= 0 || o.ElectionTimeout < 3*o.Heartbeat:
		return &OptionError{"ElectionTimeout", fmt.Sprintf("%s is less than 3 heartbeats of %s", o.ElectionTimeout, o.Heartbeat)}
	case o.Experiment.MaxBatchBytes < 0 || o.Experiment.MaxBatchCommands < 0 || o.Experiment.MaxFrameBytes < 0 || o.Experiment.PipelineDepth < 0 ||
		o.Limits.CommandBytes < 0 || o.Limits.PendingBytes < 0 || o.Limits.SnapshotBytes < 0 || o.Limits.KeepLogBytes < 0 || o.Limits.BodyCacheBytes < 0:
		return &OptionError{"Limits", "must not be negative"}
	case o.Experiment.MaxBatchBytes > protocol.MaxEntryBytes/2 || o.Experiment.MaxFrameBytes > protocol.MaxEntryBytes/2:
		return &OptionError{"Experiment", fmt.Sprintf("MaxBatchBytes %d and MaxFrameBytes %d are at most %d", o.Experiment.MaxBatchBytes, o.Experiment.MaxFrameBytes, protocol.MaxEntryBytes/2)}
	case o.Placement != PlacementCode && o.ExtraWhole > 0, o.Placement == PlacementCopy && o.CodeK > 0:
		return &OptionError{"Placement", fmt.Sprintf("%q has no use for CodeK %d and ExtraWhole %d", o.Placement, o.CodeK, o.ExtraWhole)}
	case o.Placement == PlacementRS && (o.Join || o.CodeK > len(o.Members)):
		return &OptionError{"Placement", fmt.Sprintf("%q needs its members from the start, at least CodeK of them, which is %d", o.Placement, o.CodeK)}
	case o.CodeK < 0 || o.CodeK > maxCodeK || o.ExtraWhole < 0:
		return &OptionError{"CodeK", fmt.Sprintf("%d (with ExtraWhole %d) is not in 0…%d", o.CodeK, o.ExtraWhole, maxCodeK)}
	}
	return o.checkMembers()
}

// checkMembers checks who the others are and how they reach this member. A directory that has data knows who its
// members are, so Members need not include this one then.
func (o *Options) checkMembers() error {
	for i := range o.Members {
		m := &o.Members[i]
		if i > 0 && o.Members[i-1].ID == m.ID {
			return &OptionError{"Members", fmt.Sprintf("name member %s twice", m.ID)}
		}
		if err := checkPeerURLs(m.PeerURLs); err != nil {
			return &OptionError{"Members", fmt.Sprintf("member %s: %v", m.ID, err)}
		}
	}
	if other := slices.ContainsFunc(o.Members, func(m Member) bool { return m.ID != o.Self }); other && len(o.Listen)+len(o.Listeners) == 0 {
		return &OptionError{"Listen", "is required where there are other members: they connect to this one"}
	}
	if o.Join {
		return nil
	}
	c := protocol.Config{Members: o.Members}
	if n := len(protocol.EncodeConfig(c)); n > protocol.MaxConfigBytes {
		return &OptionError{"Members", fmt.Sprintf("take %d bytes, the limit is %d", n, protocol.MaxConfigBytes)}
	}
	if err := c.Validate(); err != nil && !(len(o.Members) == 0 && replica.Begun(o.FS, o.Dir)) {
		return &OptionError{"Members", err.Error()}
	}
	if c.Find(o.Self) == nil && !replica.Begun(o.FS, o.Dir) {
		return &OptionError{"Members", "do not include member " + o.Self.String()}
	}
	return nil
}

// checkPeerURLs describes what is wrong with the URLs at which a member is to be found; nil: nothing.
func checkPeerURLs(urls []string) error {
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" || u.Path != "" && u.Path != "/" {
			return fmt.Errorf("peer URL %q is not of the form http://host:port or https://host:port", text)
		}
	}
	return nil
}
