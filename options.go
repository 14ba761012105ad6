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
	"time"

	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// Options opens a member. The zero value of an optional field means its default.
type Options struct {
	// Self is this member's id, see [MemberIDOf], and Cluster the cluster's, see [ClusterIDOf]. Both are required,
	// except where Dir has data, which knows them, and for a member that joins.
	Self    MemberID
	Cluster uint64
	Dir     string // directory for log and snapshots, required; made if missing
	// Members is the initial cluster, with an id and peer URLs (http://host:port or https://host:port) each. If Dir
	// holds a log, or with Join, they only say whom to dial first, and may include Self or not: to open a member again,
	// Dir, Listen and Protocol suffice. They are dialed until a member answers elsewhere, or a change of the membership
	// brings another URL. A member tells the others its own URLs from here, and they dial it there although the
	// membership has others. Status.Links says where each member is dialed.
	Members []Member
	// Join begins empty, as a member of a running cluster to which [Node.ChangeMembers] adds it. With the ids of all
	// Members it may start before it is added. Without Self, Cluster and these ids it must have been added: Open asks
	// Members, which have only PeerURLs then, for at most ten seconds, and they tell it the rest. They know it by its
	// own PeerURLs; by default these are Listen, or the addresses of Listeners, with http:// or https:// in front.
	Join     bool
	PeerURLs []string
	// Listen are the addresses (host:port) to accept other members on, one per network card. A cluster of one needs
	// none; it is required where Members, or the log in Dir, has others. Listeners are open listeners to use instead.
	// Open takes them: the member closes them when it stops, and Open when it fails. To open the member again, give it
	// new ones, or Listen.
	Listen    []string
	Listeners []net.Listener
	// Dial connects to another member at the host:port of one of its peer URLs, for another network than TCP together
	// with Listeners; nil: over TCP. It is called concurrently, and must return when ctx ends. A connection must keep
	// the order, heed deadlines, and be ended by Close in another goroutine, as those of package net do.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	TLS  TLS // between members

	// Protocol is how the members agree on the log, with its settings; nil: as Named(""), [Raft] for a new log.
	Protocol Protocol

	Heartbeat time.Duration `setting:"heartbeat-interval"` // default 100 ms, at least 1 ms
	// ElectionTimeout is how long a member does without a leader before an election: at least 3 heartbeats and at most
	// 50 s, default 1 s. See [Node.Tune].
	ElectionTimeout time.Duration `setting:"election-timeout"`
	// LeaseReads answers reads without a round trip, by clocks of bounded drift. See [Node.Tune].
	// https://github.com/braidlog/braid/blob/main/docs/internals/raft.md says what clocks are assumed to do.
	LeaseReads bool `setting:"lease-reads"`
	// Fit says what the leader does when another protocol, setting or leader would fit the load better: off, advise
	// (the default) or on. See [Node.Tune].
	Fit FitMode `setting:"fit"`

	Limits     Limits     // bounds of memory, disk and time
	Experiment Experiment // measurements only

	// FS has the files of Dir; default [OSFS]. See [FS] for what the log relies on.
	FS     FS
	Logger *slog.Logger // default slog.Default()
	// Answer serves the requests that another member's program sent with [Node.Ask]. It is called concurrently, and must
	// return when ctx ends, because [Node.Close] waits for it: so it must not call Close.
	Answer func(ctx context.Context, from MemberID, request []byte) ([]byte, error)
}

// TLS says how members reach each other. The zero value is plain TCP.
type TLS struct {
	Config *tls.Config // mutual TLS; nil: plain TCP
	// ByURL is for the time in which a running cluster changes from plain TCP to TLS, or back
	// (https://github.com/braidlog/braid/blob/main/docs/using/operations.md). Members whose peer URL begins with
	// http:// are dialed without TLS although there is a Config, and this member takes links with and without: links
	// are not authenticated then.
	ByURL bool
	// Binds demands that the certificate of a member that connects names the host of one of its peer URLs. Without it,
	// any certificate that Config accepts may be any member's when it connects; when this member connects to another
	// one, the host is always compared.
	Binds bool
}

// Limits bound what a member uses. The zero value of a field means its default.
type Limits struct {
	CommandBytes  int // a command and its body; default 32 MiB
	PendingBytes  int // proposals of this member that wait or are in progress; default 256 MiB
	SnapshotBytes int // log bytes between snapshots; default 256 MiB
	// KeepLogBytes bounds the log that is kept for members that catch up, also while they are sent a snapshot; default
	// 4 SnapshotBytes. A member that is further behind is sent a snapshot again.
	KeepLogBytes int
	// BodyCacheBytes bounds the whole bodies kept in memory for reading; default 64 MiB, or a sixteenth of Go's memory
	// limit if that is less.
	BodyCacheBytes int
	// ScrubBytesPerSecond is how fast the log, the snapshots and the bodies on disk are read to find damage, which is
	// repaired; default 4 MiB, negative: never.
	ScrubBytesPerSecond int
}

// Experiment turns off or fixes single optimisations, to measure what they bring ("Replication" in
// https://github.com/braidlog/braid/blob/main/docs/internals/raft.md). The zero value is for production: it needs no
// tuning.
type Experiment struct {
	NoBatching       bool // one command per entry, one entry per frame
	NoPipeline       bool // one frame in progress per follower
	NoParallelAppend bool // the leader writes to its disk before it sends
	NoAsyncApply     bool // replication waits for the state machine
	MaxBatchBytes    int  // payload bytes at which an entry is full; default 128 KiB
	MaxBatchCommands int  // commands at which an entry is full; default no limit
	MaxFrameBytes    int  // payload bytes of one frame to a follower; default 1 MiB
	PipelineDepth    int  // frames and batches in progress; default adaptive
	// The times of a fitter (https://github.com/braidlog/braid/blob/main/docs/using/fit.md): for how long a gain lasts
	// before the change is made, how long is waited after a change, and for how long a change that was taken back is
	// not tried again, the first time. 0: 10 s, 30 s and 10 min.
	FitLasts, FitWaits, FitAvoids time.Duration
	// Net emulates links, as the flag --net of the program braid
	// (https://github.com/braidlog/braid/blob/main/docs/using/operations.md). It finds members by the names that they
	// have in Members, and in the membership later. [Node.SetNet] changes it.
	Net string
}

// OptionError is an option that makes no sense. Nothing was started. A retry with it gets the same answer. If it is a
// setting that is wrong, the error wraps a [*SettingError].
type OptionError struct {
	Option, Detail string
	err            error
}

func (e *OptionError) Error() string { return "braid: option " + e.Option + ": " + e.Detail }

// Unwrap returns what is known of the cause, or nil.
func (e *OptionError) Unwrap() error { return e.err }

func badOption(option, format string, args ...any) error {
	return &OptionError{Option: option, Detail: fmt.Sprintf(format, args...)}
}

// config is what a member runs with: options whose defaults are filled in, and what they choose of the protocol.
type config struct {
	Options
	// choice is that with which the log began. given is what the options name. Both are of one core, unless the log was
	// sealed. They are the same as long as the log has no profile.
	choice, given registry.Choice
}

// complete checks the options and fills in the defaults. The error is an [*OptionError].
func (o Options) complete() (*config, error) {
	given, err := o.choose()
	if err != nil {
		return nil, err
	}
	choice, err := o.ofLog(&given)
	if err != nil {
		return nil, err
	}
	c := &config{o, choice, given}
	c.Heartbeat = common.Heartbeat.In(choice.Values)
	c.ElectionTimeout = common.ElectionTimeout.In(choice.Values)
	c.LeaseReads = common.LeaseReads.In(choice.Values)
	c.Fit = common.Fit.In(choice.Values)
	c.Experiment.MaxBatchBytes = cmp.Or(c.Experiment.MaxBatchBytes, intake.DefaultBatchBytes)
	c.Experiment.MaxFrameBytes = cmp.Or(c.Experiment.MaxFrameBytes, 1<<20)
	c.Limits.complete()
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.FS = c.files()
	c.Members = slices.Clone(c.Members) // callers may share one list between members
	slices.SortFunc(c.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return c, c.check()
}

// complete fills in the defaults.
func (l *Limits) complete() {
	l.CommandBytes = cmp.Or(l.CommandBytes, 32<<20)
	l.PendingBytes = cmp.Or(l.PendingBytes, 256<<20)
	l.SnapshotBytes = cmp.Or(l.SnapshotBytes, 256<<20)
	l.KeepLogBytes = cmp.Or(l.KeepLogBytes, 4*l.SnapshotBytes)
	l.BodyCacheBytes = cmp.Or(l.BodyCacheBytes, defaultCache())
	l.ScrubBytesPerSecond = cmp.Or(l.ScrubBytesPerSecond, 4<<20)
}

// settings are those that members share, by the names of the command's flags. Members compare them when they connect.
// docs/using/settings.md says for each setting why it is compared or why not.
func (c *config) settings() replica.SharedSettings {
	own := c.choice.Own()
	core, rest := c.choice.Core.Told(own)
	s := replica.SharedSettings{
		Table: c.choice.Table(), Flags: c.choice.Profile(), Given: c.given.Profile(), Began: c.began(),
		Name: c.given.Name, InLog: !c.choice.Core.Judged.Fixed,
	}
	s.Behind = func(p *protocol.Profile) (string, setting.Table) {
		if registry.CoreOf(p.Core) == nil { // a later version's
			return p.Core, setting.Table{}
		}
		now := c.choice.At(p, 1)
		return now.Name, now.Table()
	}
	for name := range own.All() {
		if _, told := rest.Get(name); !told {
			s.Implied = append(s.Implied, name)
		}
	}
	return s.Of(core)
}

// logKind is what the log is, which never changes.
func (c *config) logKind() LogKind { return logKindOf(&c.choice) }

// logKindOf is the kind of a new log.
func logKindOf(c *registry.Choice) LogKind {
	k := LogKind{Order: c.Order}
	k.Core, _ = c.Core.Told(c.Own())
	if c.Quorums != nil {
		k.Fragments = common.CodeK.In(c.Values)
	}
	return k
}

// ofLog is the choice for the log of the member's directory, or for that of the cluster that it joins: how that began
// counts, and not what the options name, if both are of one core and the log has a profile, if the log was sealed, or
// if the options name no protocol.
func (o *Options) ofLog(given *registry.Choice) (registry.Choice, error) {
	flags, guess := logKindOf(given), registry.NewGuess()
	born := replica.Born{}
	var err error
	if j, ok := o.Protocol.(joining); ok {
		born = j.born
	} else if o.Dir != "" {
		born, err = replica.BornAs(o.files(), o.Dir, flags, guess, o.unnamed())
	}
	kind := born.Kind
	other := !kind.IsZero() && kind != flags && !kind.Shares(flags, guess.Core)
	switch {
	case err == nil && other && !born.Sealed && !o.unnamed():
		return *given, badOption("Protocol", "is %s, and the cluster that this member is to join has a log of %s",
			flags, kind)
	case err == nil && (born.Sealed || other):
		fixed := map[string]string{quorum.Setting.Name: born.Quorums, "epochs": born.Epochs}
		return given.Began(kind.Core, kind.Order, born.Instances, fixed)
	case err != nil || !kind.Shares(flags, guess.Core):
		return *given, err
	}
	return given.As(kind.Core, kind.Order, born.Instances)
}

// began lists what the options name and the log does not have, because it began otherwise.
func (c *config) began() (all []replica.Overruled) {
	from := ", as the log began"
	if c.given.Core != c.choice.Core {
		from += " before a seal"
	}
	if c.given.Name != c.choice.Name && !c.unnamed() {
		all = append(all, replica.Overruled{Name: "protocol", Here: c.given.Name, Used: c.choice.Name + from})
	}
	if here, used := c.given.Instances(), c.choice.Instances(); here > 1 && here != used {
		all = append(all, replica.Overruled{Name: common.Instances.Name, Here: strconv.Itoa(here),
			Used: strconv.Itoa(used) + from})
	}
	return all
}

// codeK is how many fragments make a body whole, at most.
func (c *config) codeK() int { return common.CodeK.In(c.choice.Values) }

// CheckDir reports why [Open] would refuse Dir because of what is in it: a [*LogKindError], a [*DirError] or a
// [*ForgottenError]. It only reads, so that a program can ask before it changes anything alongside Dir, and also where
// Dir does not exist yet. It may be called while a member runs there. It does not read the log: Open may still find
// damage there, or that the member was removed ([*ExpelledError]).
func (o Options) CheckDir() error {
	if err := o.ownerOf(); err != nil {
		return err
	}
	o.Members = slices.DeleteFunc(slices.Clone(o.Members), func(m Member) bool { return m.ID == 0 && o.Join })
	if o.Join && o.Self == 0 && o.Cluster == 0 {
		return nil // a new directory, of a member that is not told its ids yet
	}
	c, err := o.complete()
	if err != nil {
		return err
	}
	r := c.replica(nil)
	return r.CheckDir()
}

// quorums are those of the settings.
func (c *config) quorums() quorum.System { return quorum.Setting.In(c.choice.Values) }

// Groups is how many groups of keys there are with these options, and [NewGroups] is to be given; 0: there is one order
// of all keys. For a member that joins it is the setting "instances". The options need not be complete.
func (o *Options) Groups() int {
	c, err := o.choose()
	if err != nil {
		return 0
	}
	return c.Groups()
}

// Coded reports whether members keep fragments of the bodies of commands. The options need not be complete.
func (o *Options) Coded() bool {
	c, err := o.choose()
	return err == nil && c.Placement != protocol.PlacementCopy
}

// checkMachine refuses a state machine that the protocol cannot drive.
func (c *config) checkMachine(sm StateMachine) error {
	if _, durable := sm.(DurableStateMachine); durable && c.choice.Core.Judged.ByKey {
		return badOption("Protocol", "%s orders only commands with a key in common, and drives no state machine that "+
			"keeps its state on disk", c.choice.Name)
	}
	return nil
}

func (c *config) check() error {
	x, l := &c.Experiment, &c.Limits
	switch {
	case c.Self == 0:
		return badOption("Self", "is required")
	case c.Cluster == 0:
		return badOption("Cluster", "is required")
	case c.Dir == "":
		return badOption("Dir", "is required")
	case min(l.CommandBytes, l.PendingBytes, l.SnapshotBytes, l.KeepLogBytes, l.BodyCacheBytes) < 0:
		return badOption("Limits", "must not be negative")
	case min(x.MaxBatchBytes, x.MaxBatchCommands, x.MaxFrameBytes, x.PipelineDepth) < 0,
		min(x.FitLasts, x.FitWaits, x.FitAvoids) < 0:
		return badOption("Experiment", "must not be negative")
	case max(x.MaxBatchBytes, x.MaxFrameBytes) > protocol.MaxEntryBytes/2:
		return badOption("Experiment", "MaxBatchBytes %d and MaxFrameBytes %d are at most %d",
			x.MaxBatchBytes, x.MaxFrameBytes, protocol.MaxEntryBytes/2)
	case c.choice.Instances() == 0:
		return badOption("Protocol", "%s needs the number of instances where there are no Members", c.choice.Name)
	case c.choice.Quorums != nil && (c.Join || c.codeK() > len(c.Members)):
		return badOption("Protocol", "%s needs its members from the start, at least as many as code-k, which is %d",
			c.choice.Name, c.codeK())
	}
	return c.checkMembers()
}

// checkMembers checks who the others are and how they reach this member. A directory that has data knows who its
// members are, so Members need not include this one then.
func (c *config) checkMembers() error {
	for i := range c.Members {
		m := &c.Members[i]
		if i > 0 && c.Members[i-1].ID == m.ID {
			return badOption("Members", "name member %s twice", m.ID)
		}
		if err := checkPeerURLs(m.PeerURLs); err != nil {
			return badOption("Members", "member %s: %v", m.ID, err)
		}
	}
	conf := protocol.Config{Members: c.Members}
	if conf.HasOthers(c.Self) && !c.listens() {
		return c.notListening()
	}
	if c.Join {
		return nil
	}
	if n := len(protocol.EncodeConfig(conf)); n > protocol.MaxConfigBytes {
		return badOption("Members", "take %d bytes, the limit is %d", n, protocol.MaxConfigBytes)
	}
	if err := conf.Validate(); err != nil && !(len(c.Members) == 0 && replica.Begun(c.FS, c.Dir)) {
		return badOption("Members", "%v", err)
	}
	if replica.Begun(c.FS, c.Dir) {
		return nil
	}
	if conf.Find(c.Self) == nil {
		return badOption("Members", "do not include member %s", c.Self)
	}
	if err := c.quorums().Fits(len(conf.Voters()), quorum.ZonesOf(&conf)); err != nil {
		return badOption("Members", "%v", err)
	}
	return nil
}

// listens reports whether other members can connect to this one.
func (c *config) listens() bool { return len(c.Listen)+len(c.Listeners) > 0 }

// notListening returns the error of a member that has others and does not listen.
func (c *config) notListening() error {
	return badOption("Listen", "is required where there are other members: they connect to this one")
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
