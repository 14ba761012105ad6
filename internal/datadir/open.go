package datadir

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/member/lifecycle"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// Config has the owner of the directory, and the settings with which it is opened.
type Config struct {
	FS      vfs.FS
	Dir     string
	Cluster uint64
	Self    protocol.MemberID
	Chance  func() uint64 // see Enter
	// Begin and Members are those of a new cluster. A member that joins (Join) has no Members: it learns them later.
	Begin   order.Cursor
	Members []protocol.Member
	Join    bool
	// Profile is the first profile of a new cluster, with Members; version 0: its log begins without one. Profiled:
	// other members told a member that joins that the log has a profile.
	Profile  protocol.Profile
	Profiled bool
	// Sealed: they told it that the log had a seal.
	Sealed  bool
	Machine member.StateMachine
	// Identity is the owner in the files of log and bodies.
	Identity []byte
	// Cells: instances use cells from the beginning on. If not, the directory records it before the first one is
	// written, whatever core then writes it.
	Cells bool
	// Accepted returns what reads the entry in a cell of instances that begin under a profile (protocol.CellUse.Entry);
	// nil: none.
	Accepted func(*protocol.Profile) func(protocol.Cell) (protocol.Entry, bool)
	// State is the state with which a new directory begins; nil: that of the state machine.
	State *State
	// Derive creates the state that the cores derive from their logs; nil: they derive none.
	Derive member.Derive
	// Epochs tells the settings of the epochs; "": there are none.
	Epochs string
	// Quorums tells which quorums the cluster has; "": majorities.
	Quorums string
	// Kind is the kind of the log; zero: it is not compared. Guess is for a directory that does not record it.
	Kind  member.LogKind
	Guess func() member.KindGuess
	// Newest is the newest format that the program knows; 0: [format.Newest].
	Newest int
	// LogSegment and BodySegment are the sizes of these files in bytes.
	LogSegment, BodySegment int64
}

// Opened is a member's directory after a start has read it.
type Opened struct {
	Own      cluster.OwnIdentity
	Register *cluster.Register
	// Birth is the state with which the cluster began, or begins.
	Birth cluster.Birth
	// Begin has the instances with which the cluster began, or begins.
	Begin     order.Cursor
	Snapshots *Snapshots
	// Meta is that of the snapshot with which the member starts. Skip is the position up to which the state machine has
	// already applied. Ahead: it is further than the log. Within: it is no further than the log would be if all of its
	// entries were decided, also those that cells hold.
	Meta      member.Meta
	Skip      protocol.Position
	Ahead     bool
	Within    bool
	Log       *wal.Log
	Instances *lifecycle.FoundInstances
	Bodies    *wal.Bodies
	// Ballast is the reason why no space is reserved for the next start; nil: it is.
	Ballast error

	config Config
	lock   io.Closer
	mu     sync.Mutex // held while identity, register and ballast are replaced
	grown  bool       // it is durable that the log may have several instances, see Grow
	sealed bool       // it is durable that the log may have a seal
	format int        // the one that is durable
}

// The subdirectories of a directory.
const (
	snapshotDir = "snapshots"
	logDir      = "log"
	bodyDir     = "bodies"
)

func (c *Config) owner() Owner {
	who := Owner{Cluster: c.Cluster, Member: c.Self, Epochs: c.Epochs, Quorums: c.Quorums, Kind: c.Kind, Guess: c.Guess,
		Join: c.Join, Sealed: c.Sealed, Newest: c.Newest,
		Profile: c.Profiled || len(c.Members) > 0 && c.Profile.Version > 0}
	if len(c.Members) > 0 {
		who.Founders = cluster.Founders(c.Members)
	}
	return who
}

// Check returns why Open would refuse the directory before it changes anything; nil: it would not, or there is none.
func (c *Config) Check() error { return Check(c.FS, c.Dir, c.owner()) }

// Open begins an incarnation in a member's directory, and brings the state machine to the newest snapshot. The order of
// its steps is that of every start. A state machine on disk must be as it was when the member stopped. A state machine
// in memory must be empty.
func Open(c Config) (*Opened, error) {
	who := c.owner()
	var err error
	if who.Birth, err = cluster.BirthOf(c.Machine); err != nil {
		return nil, err
	}
	if c.State != nil {
		who.Birth = c.State.Name
	}
	own, lock, err := Enter(c.FS, c.Dir, who, c.Chance)
	if err != nil {
		return nil, err
	}
	o := &Opened{Own: own, Begin: c.Begin, config: c, lock: lock}
	if err := o.read(&c, who.Birth); err != nil {
		return nil, errors.Join(lost(err), o.Close())
	}
	o.Ballast = KeepBallast(c.FS, c.Dir)
	return o, nil
}

func (o *Opened) read(c *Config, birth string) (err error) {
	id, err := readIdentity(c.FS, c.Dir, c.Cluster, c.Self)
	if err != nil {
		return err
	}
	o.Birth = id.birth()
	if id.Cells {
		c.Cells, o.config.Cells = true, true
	}
	if o.Register, err = LoadRegister(c.FS, c.Dir, o.Own); err != nil {
		return err
	}
	if o.Snapshots, err = OpenSnapshots(c.FS, filepath.Join(c.Dir, snapshotDir)); err != nil {
		return err
	}
	o.Snapshots.before = o.beforeSnapshot
	o.format = id.Format
	if err := o.begin(c, birth); err != nil {
		return err
	}
	if o.Meta, o.Skip, err = Restore(o.Snapshots, c.Machine, c.Derive); err != nil {
		return err
	}
	if err := o.withState(c.Machine); err != nil {
		return err
	}
	log := wal.Options{FS: c.FS, Dir: filepath.Join(c.Dir, logDir), Identity: c.Identity,
		Cover: lifecycle.CoverOf(&o.Meta, c.Cells), BeforeCells: o.recordCells, BeforeGrowth: o.Grow,
		BeforeSeal: o.recordSeal, SegmentBytes: c.LogSegment, Newest: c.Newest, Format: o.format}
	if o.Log, err = wal.Open(log); err != nil {
		return err
	}
	if o.Instances, err = lifecycle.FindInstances(o.Log, &o.Meta); err != nil {
		return err
	}
	if err := o.belongs(); err != nil {
		return err
	}
	if err := o.forget(); err != nil {
		return err
	}
	bodies := wal.BodiesOptions{FS: c.FS, Dir: filepath.Join(c.Dir, bodyDir), Identity: c.Identity,
		SegmentBytes: c.BodySegment}
	o.Bodies, err = wal.OpenBodies(bodies)
	return err
}

// belongs refuses a state that is further than the log, if that is impossible. If others may have the missing part of
// the log, it is found out when the log continues: see [apply.StateAheadError].
func (o *Opened) belongs() error {
	end, all := o.Instances.End(&o.Meta, o.logs())
	o.Within = o.Skip <= end
	if !all || o.Within || o.config.Cells { // with cells, decisions are written to the log later
		return nil
	}
	if o.Ahead = true; o.Instances.Alone(o.config.Self) {
		return &member.DirError{Dir: o.config.Dir,
			Detail: fmt.Sprintf("the log ends at position %d, but the state machine is at %d: they do not belong together", end,
				o.Skip)}
	}
	return nil
}

// OpenBodies opens the bodies of a directory alone.
func OpenBodies(fs vfs.FS, dir string, identity []byte) (*wal.Bodies, error) {
	return wal.OpenBodies(wal.BodiesOptions{FS: fs, Dir: filepath.Join(dir, bodyDir), Identity: identity})
}

// Dir is the path of the directory.
func (o *Opened) Dir() string { return o.config.Dir }

// forget removes the records of retired instances from the log. It is not urgent: in doubt, the next start tries
// again.
func (o *Opened) forget() error {
	if len(o.Instances.Retired()) == 0 {
		return nil
	}
	oldest, err := o.Snapshots.Settled()
	if err != nil {
		return nil
	}
	return o.Instances.Forget(o.Log, &oldest)
}

// begin determines the instances with which the cluster began. In a new directory it writes the first snapshot, which
// has the membership, and the state with which the cluster begins. birth names the state that this start has.
func (o *Opened) begin(c *Config, birth string) error {
	if c.Begin.Several() {
		begun, err := Begin(c.FS, c.Dir, c.Cluster, c.Self, len(c.Begin.Points))
		if err != nil {
			return err
		}
		o.Begin = order.Begin(begun, true)
		if c.Begin.Keyed {
			o.Begin = order.BeginKeyed(begun)
		}
	}
	if ok, err := o.Snapshots.Any(); ok || err != nil {
		return err
	}
	if want := o.Birth.State; want != "" && want != birth && member.Damaged(c.Machine) == nil {
		return &member.DirError{Dir: c.Dir,
			Detail: fmt.Sprintf("was to begin with the state %s, and ended before it had it: "+
				"remove the directory, and begin with that state again", want)}
	}
	if d, ok := c.Machine.(member.DurableStateMachine); ok && d.Applied() > 0 {
		return &member.DirError{Dir: c.Dir,
			Detail: fmt.Sprintf("is new, but the state machine is at position %d", d.Applied())}
	}
	var state func(io.Writer) error
	if c.State != nil {
		state = c.State.Write
	}
	meta := member.Bootstrap(o.Begin, c.Members)
	if len(c.Members) > 0 {
		meta.Found(c.Profile)
	}
	return o.Snapshots.Write(SnapshotHeader{Meta: meta, HasState: state != nil}, state)
}

// lost adds the remedy to an error if the disk has lost what the member needs.
func lost(err error) error {
	if member.IsDamage(err) {
		return &member.LostError{Err: err}
	}
	return err
}

// Kept is the known state of the bodies to which log and state refer. The others are dropped.
func (o *Opened) Kept(hooks body.KeptHooks) (*body.Kept, error) {
	k, err := body.OpenKept(o.Own.Member, o.Bodies, hooks, o.config.Machine, o.Meta.Cursor.Instances(), o.logs())
	return k, lost(err)
}

// logs is all that the log had of instances, with what their cells hold.
func (o *Opened) logs() []member.InstanceLog {
	logs := o.Instances.Logs()
	for i := range logs {
		if accepted := o.accepted(&logs[i]); accepted != nil {
			logs[i].Accept(accepted)
		}
	}
	return logs
}

// accepted is what reads the entry in a cell of an instance; nil: none.
func (o *Opened) accepted(log *member.InstanceLog) func(protocol.Cell) (protocol.Entry, bool) {
	if o.config.Accepted == nil {
		return nil
	}
	return o.config.Accepted(&log.Recovered.Base.Config.Profile)
}

// Session is the session of the member's proposals in this incarnation. All instances share its numbers, also those
// that begin later; groups of keys do not.
func (o *Opened) Session() protocol.Session { return o.Own.Session(!o.Begin.Keyed) }

// RecordBirth makes durable with which state the cluster began; "": an empty one. On a full disk the ballast makes
// space for it.
func (o *Opened) RecordBirth(state string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &o.config
	return withBallast(c.FS, c.Dir, func() error { return recordBirth(c.FS, c.Dir, c.Cluster, c.Self, state) })
}

// recordCells makes durable that the log may have cells. On a full disk the ballast makes space for it.
func (o *Opened) recordCells() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &o.config
	return withBallast(c.FS, c.Dir, func() error { return recordCells(c.FS, c.Dir, c.Cluster, c.Self) })
}

// SaveRegister writes the register durably. On a full disk the ballast makes space for it.
func (o *Opened) SaveRegister(r *cluster.Register) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &o.config
	return withBallast(c.FS, c.Dir, func() error { return SaveRegister(c.FS, c.Dir, r) })
}

// Grow records durably that an earlier version must not open the directory any more. It is called before anything is
// written that only a log of several instances has: the entry that makes several of one, an instance's beginning, or a
// snapshot of several. On a full disk the ballast makes space for it.
func (o *Opened) Grow() error {
	if o.Begin.Several() {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.grown {
		return nil
	}
	c := &o.config
	err := withBallast(c.FS, c.Dir, func() error { return Grow(c.FS, c.Dir, c.Cluster, c.Self) })
	o.grown = err == nil
	return err
}

// recordSeal records durably that an earlier version must not open the directory any more. It is called before anything
// is written that only a log with a seal has: the entry that seals it, an instance's beginning behind it, or a snapshot
// from there. On a full disk the ballast makes space for it.
func (o *Opened) recordSeal() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sealed {
		return nil
	}
	c := &o.config
	err := withBallast(c.FS, c.Dir, func() error { return RecordSeal(c.FS, c.Dir, c.Cluster, c.Self) })
	o.sealed = err == nil
	return err
}

// Format is the format that the directory may have, as it is durable.
func (o *Opened) Format() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.format
}

// WriteFormat makes durable that the directory may have a format. Then files that the log begins have it. On a full
// disk the ballast makes space for the record.
func (o *Opened) WriteFormat(to int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if to <= o.format {
		return nil
	}
	c := &o.config
	err := withBallast(c.FS, c.Dir, func() error { return RecordFormat(c.FS, c.Dir, c.Cluster, c.Self, to) })
	if err != nil {
		return err
	}
	o.format = to
	if o.Log != nil { // else it is opened with this format
		o.Log.WriteFormat(to)
	}
	return nil
}

// beforeSnapshot records what earlier versions must not open.
func (o *Opened) beforeSnapshot(m *member.Meta) error {
	if m.Config.Profile.Sealed() {
		if err := o.recordSeal(); err != nil {
			return err
		}
	}
	if err := o.WriteFormat(m.Config.Format); err != nil {
		return err
	}
	if m.Cursor.Merged() {
		return o.Grow()
	}
	return nil
}

// Grown reports whether the log began with one instance, and has had several at a place.
func (o *Opened) Grown(at *order.Cursor) bool { return !o.Begin.Several() && at.Merged() }

// Condemn records that the member lost what it acknowledged. No incarnation may begin in the directory any more, and
// the member stops with the returned error.
func (o *Opened) Condemn(f *protocol.Forgot) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &o.config
	return errors.Join(cluster.Forgotten(c.Self, f), Condemn(c.FS, c.Dir, c.Cluster, c.Self, f))
}

// Close closes what was opened, in reverse order.
func (o *Opened) Close() error {
	var errs []error
	if o.Bodies != nil {
		errs = append(errs, wal.IgnoreFailed(o.Bodies.Close()))
	}
	if o.Log != nil {
		errs = append(errs, wal.IgnoreFailed(o.Log.Close()))
	}
	return errors.Join(append(errs, o.lock.Close())...)
}
