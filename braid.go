// Package braid is a replicated log that runs a state machine of yours on every member of
// a cluster: open a [Node], propose commands, read, change the membership.
//
// A command that Propose acknowledged survives any minority of crashes and the loss of
// power on all members at once. It takes effect exactly once, in the same order on every
// member. A local read after ReadBarrier is linearizable.
//
// The first of three members, which here run on one machine:
//
//	members := []braid.Member{
//		{ID: 1, Name: "a", PeerURLs: []string{"http://127.0.0.1:7001"}},
//		{ID: 2, Name: "b", PeerURLs: []string{"http://127.0.0.1:7002"}},
//		{ID: 3, Name: "c", PeerURLs: []string{"http://127.0.0.1:7003"}},
//	}
//	machine := &counter{}
//	node, err := braid.Open(braid.Options{
//		Self: 1, Dir: "data-1", Listen: []string{"127.0.0.1:7001"}, // of each member its own
//		Cluster: braid.ClusterIDOf(members, "orders"), Members: members,
//	}, machine)
//	if err != nil {
//		return err
//	}
//	defer node.Close()
//	err = node.WaitReady(ctx)
//	result, err := node.Propose(ctx, []byte("command")) // runs Apply on every member
//	err = node.ReadBarrier(ctx)                         // then machine.read() is linearizable
//
// The state machine, without Snapshot and Restore (the package's example has both):
//
//	type counter struct {
//		mu sync.Mutex // reads come from other goroutines than Apply
//		n  int
//	}
//
//	func (c *counter) Apply(commands []braid.Command) error {
//		c.mu.Lock()
//		defer c.mu.Unlock()
//		for i := range commands {
//			c.n++
//			commands[i].Result = c.n
//		}
//		return nil
//	}
//
// # A cluster from beginning to end
//
// All first members are opened with the same Members, and each restarts with the same options. [Node.ChangeMembers]
// adds further members, and removes others. [Node.WaitReady] waits until a member is up to date, and [Node.Changes]
// tells when its leader or its membership changed. [Node.Snapshot] writes a backup, and [RestoreFile] makes a new
// cluster of it. If a majority of the members is lost permanently, [RecoverAlone] begins a new cluster with everything
// that one of the others has.
//
// To add a member:
//
//  1. Call [Node.ChangeMembers] on any member, with the Kind [AddVoter] and a [Member] that has an ID and PeerURLs.
//  2. Open the new member with Options.Join, a new Dir, its address in Listen, and in Members the PeerURLs of any
//     member. It asks there for its id, the cluster's id and the other members.
//  3. Wait until Learner is false for it in Status().Members, with [Node.Changes]. From then on it votes.
//
// To remove a member, call ChangeMembers with the Kind [RemoveMember] and its ID. It stops by itself.
//
// # What the program implements
//
// A [StateMachine] with Apply, Snapshot and Restore. Its state is in memory: the log keeps the commands and snapshots
// of the state. A [DurableStateMachine] keeps its state on disk itself. Large values are bodies of commands
// ([Node.ProposeBody]), which the log keeps outside of the state, see [BodyKeeper]. Options.Protocol chooses how the
// members agree, by default with [Raft].
//
// # Errors
//
// Each method lists the errors that it returns. The documentation of each error says what happened to the command, and
// whether a retry is safe. Errors are wrapped and joined: use [errors.Is] and [errors.As].
//
// The repository https://github.com/braidlog/braid has the documentation in depth: docs/using for programs and
// operators, docs/internals for how it works.
package braid

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/quorum"
)

// Node is a member of a running cluster. Its methods are safe for concurrent use. A method with a
// context that ended before the call does nothing: the error wraps the context's, and [ErrNotSent], or
// [ErrReadTimeout] of a read. The state machine must not call methods that wait for what it has not applied: they
// return [ErrWithinApply], a proposal or a read some hundred milliseconds later.
type Node struct {
	r   *replica.Replica
	opt *config

	described atomic.Pointer[described] // see describe
	fresh     freshness
}

// Open starts a member from its directory; it connects to its cluster in the background. A new member without ids asks
// the running cluster for them first (Options.Join); if it was not added there within ten seconds, the error is
// [ErrNotAdded]. A directory with a log of another protocol, or in another order, is refused by a [*LogKindError], and
// nothing in it is changed. A member that was removed from its cluster is refused by an [*ExpelledError]. Further
// errors are [*OptionError], [*DirError], [*ForgottenError], [*MachineError], [*StateAheadError], and those of the disk
// and of listeners.
//
// A state machine that keeps its state on disk is passed as it was when the member stopped; any other one is passed
// empty. Open does not wait for other members, nor for a leader: see [Node.WaitReady].
func Open(o Options, sm StateMachine) (*Node, error) {
	c, err := o.toOpen(sm)
	if err != nil {
		closeAll(o.Listeners)
		return nil, err
	}
	listeners := c.Listeners
	if listeners == nil {
		if listeners, err = listen(c.Listen); err != nil {
			return nil, err
		}
	}
	r, err := replica.Open(c.replica(listeners), sm)
	if err != nil {
		closeAll(listeners)
		return nil, err
	}
	n := &Node{r: r, opt: c}
	if !c.listens() && n.hasOthers() {
		return nil, errors.Join(c.notListening(), r.Close())
	}
	n.logTolerance()
	return n, nil
}

// hasOthers reports whether the log has other members than this one.
func (n *Node) hasOthers() bool {
	instances := n.r.Status().Instances
	for i := range instances {
		if instances[i].Config.HasOthers(n.opt.Self) {
			return true
		}
	}
	return false
}

// logTolerance logs which failures the cluster tolerates, unless its quorums are majorities. A member that joins does
// not know yet who votes.
func (n *Node) logTolerance() {
	config := n.r.Status().Config
	if line := n.tolerance(&config); line != "" {
		n.opt.Logger.Warn(line)
	}
}

// tolerance says what the quorums tolerate under a membership and its profile, if they are not majorities.
func (n *Node) tolerance(config *protocol.Config) string {
	c := n.opt.choice.At(&config.Profile, 1)
	y := quorum.Setting.In(c.Values)
	if y.Majority() || len(config.Members) == 0 {
		return ""
	}
	return y.Tolerates(len(config.Voters()), quorum.ZonesOf(config)).String()
}

func listen(addrs []string) ([]net.Listener, error) {
	var out []net.Listener
	for _, a := range addrs {
		l, err := net.Listen("tcp", a)
		if err != nil {
			closeAll(out)
			return nil, fmt.Errorf("braid: listen for members: %w", err)
		}
		out = append(out, l)
	}
	return out, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		if l != nil { // Options may have such
			l.Close()
		}
	}
}

// toOpen checks and completes the options of a member that is to be opened.
func (o *Options) toOpen(sm StateMachine) (*config, error) {
	if sm == nil {
		return nil, badOption("StateMachine", "is nil: Open needs one, its second argument")
	}
	if err := checkListeners(o.Listeners); err != nil {
		return nil, err
	}
	if err := o.identify(); err != nil {
		return nil, err
	}
	c, err := o.complete()
	if err != nil {
		return nil, err
	}
	return c, c.checkMachine(sm)
}

// checkListeners refuses listeners that are closed, as those of a member that has stopped. One that does not show it
// stops the member later.
func checkListeners(listeners []net.Listener) error {
	for _, l := range listeners {
		if l == nil {
			return badOption("Listeners", "include nil")
		}
		s, ok := l.(syscall.Conn)
		if !ok {
			continue
		}
		raw, err := s.SyscallConn()
		if err == nil {
			err = raw.Control(func(uintptr) {})
		}
		if errors.Is(err, net.ErrClosed) {
			return badOption("Listeners", "%s is closed: give a new listener, or Listen", l.Addr())
		}
	}
	return nil
}

// program is what instances that begin under a profile have of their core. The error is a [*protocol.ProfileError].
func (c *config) program(p *protocol.Profile) (*replica.Program, error) {
	now, err := c.choice.Begins(p)
	if err != nil {
		return nil, err
	}
	return &replica.Program{
		Core: func(id protocol.InstanceID, s protocol.Session, rec protocol.Recovered) (protocol.Core, error) {
			return c.core(&now, id, s, rec)
		},
		Codec: now.Core.Codec, Proposing: proposing(&now), Accepted: now.Core.Cells.Accepted(),
		Derive: now.Core.Deriving(now.Own()), Grows: now.Grows(), Merges: now.Grows() || now.Order == order.KindNiagara,
		Decided: now.Core.Judged.DecidedOnly,
		Profile: protocol.Profile{Version: p.Version, Core: p.Core, Values: now.Values},
	}, nil
}

// core makes this member's part of an instance from what the disk held.
func (c *config) core(
	now *registry.Choice, instance protocol.InstanceID, session protocol.Session, rec protocol.Recovered,
) (protocol.Core, error) {
	s := protocol.Settings{
		Self: c.Self, Instance: instance, Session: session,
		MaxFrameBytes: c.Experiment.MaxFrameBytes, PipelineDepth: c.Experiment.PipelineDepth,
		NoPipeline: c.Experiment.NoPipeline, NoParallelAppend: c.Experiment.NoParallelAppend,
		CacheBytes: logCache(defaultCache(), now.Instances()), Merged: now.Order == order.KindNiagara,
	}
	common.Apply(&s, now.Core.Settings, now.Values)
	if c.Experiment.NoBatching {
		s.MaxFrameEntries = 1
	}
	if now.Quorums != nil {
		q, err := now.Quorums(len(c.Members), common.CodeK.In(now.Values))
		if err != nil {
			return nil, badOption("Protocol", "code-k: %v", err)
		}
		s.ReadQuorum, s.WriteQuorum = q, q
	}
	return now.Core.New(s, rec)
}

// replica translates the options for package replica.
func (c *config) replica(listeners []net.Listener) replica.Options {
	core, own := c.choice.Core, c.choice.Own()
	r := replica.Options{
		Self: c.Self, Cluster: c.Cluster, Dir: c.Dir, FS: c.FS, Members: c.Members, Join: c.Join,
		Program: c.program, Cells: core.Cells.With(own) != nil,
		Settings: c.settings(), Epochs: core.Settings.Text("epochs", c.choice.Values), Quorums: c.quorums().String(),
		Kind: c.logKind(), Guess: func() member.KindGuess { return registry.NewGuess() },
		Begin: c.begin(), Leaders: common.Leaders.In(c.choice.Values), Fitting: c.fitting(),
		Heartbeat: c.Heartbeat, ElectionTimeout: c.ElectionTimeout, Depth: c.Experiment.PipelineDepth,
		MaxBatchBytes: c.Experiment.MaxBatchBytes, MaxBatchCommands: c.Experiment.MaxBatchCommands,
		MaxCommandBytes: c.Limits.CommandBytes, MaxPendingBytes: int64(c.Limits.PendingBytes),
		SnapshotBytes: int64(c.Limits.SnapshotBytes), KeepLogBytes: int64(c.Limits.KeepLogBytes),
		BodyCacheBytes: int64(c.Limits.BodyCacheBytes), TrimWhole: common.TrimWhole.In(c.choice.Values),
		ScrubBytesPerSecond: max(0, int64(c.Limits.ScrubBytesPerSecond)), SyncApply: c.Experiment.NoAsyncApply,
		Logger: c.Logger, Answer: c.Answer,
		Listen: listeners, Dial: c.Dial, TLS: c.TLS.Config, TLSByURL: c.TLS.ByURL, TLSBinds: c.TLS.Binds, Net: c.Experiment.Net,
	}
	if c.Experiment.NoBatching {
		r.MaxBatchCommands = 1
	}
	if c.Experiment.NoPipeline {
		r.Depth = 1
	}
	if j, ok := c.Protocol.(joining); ok {
		r.Profiled, r.Sealed = true, j.born.Sealed
	}
	return r
}

// proposing describes how the core takes proposals: as it may under any profile that has the core.
func proposing(c *registry.Choice) protocol.Proposing {
	p := c.Core.Proposing
	if c.Core.Judged.Fixed || c.Order == order.KindKeyed {
		p = p.With(c.Own())
	}
	return p
}

// begin is with which instances a new cluster begins.
func (c *config) begin() order.Cursor {
	if c.choice.Order == order.KindKeyed {
		return order.BeginKeyed(c.choice.Instances())
	}
	return order.Begin(c.choice.Instances(), c.choice.Order == order.KindNiagara)
}

// NewGroups makes the state machine for [Open] with a protocol that divides keys over groups, each with an order of its
// own ([Options.Groups]): it calls machine once for each group. Every command says which keys it touches
// ([ProposeOptions].Keys), and is given to the state machine of their group: see [GroupOf]. There is no order between
// commands of different groups, and Position counts within a group. Groups have no bodies, no tokens, and no state on
// disk of their own; a [GroupError] refuses what they do not have. [Node.ReadBarrier] covers all groups.
func NewGroups(groups int, machine func(group int) StateMachine) (StateMachine, error) {
	if groups < 1 {
		return nil, &GroupError{Detail: fmt.Sprintf("there cannot be %d groups", groups)}
	}
	begin := order.BeginKeyed(groups)
	g, err := apply.NewGroups(begin.Instances(), func(id InstanceID) StateMachine {
		return machine(int(id - protocol.FirstInstance))
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// GroupOf is the group of commands with these keys, from 0 on, in a cluster with that many groups. ok is false if they
// have no group in common: such commands are refused.
func GroupOf(keys []uint64, groups int) (group int, ok bool) { return order.GroupOf(keys, groups) }

// Propose replicates a command and returns the result of applying it on this member. If ctx ends
// first, the error wraps ctx's error, and either [ErrNotSent] or [ErrMaybeCommitted]. With ErrNotSent
// the command had not left this member: it was withdrawn, and never takes effect. The error comes some
// milliseconds after ctx's end, so that it costs little to wait when thousands do.
//
// Without an end of ctx, Propose gives up after 5 s and five election timeouts, 10 s by default: with [ErrNoLeader] if
// no leader took the command, else with ErrMaybeCommitted. A large body has more time. A command that is known to be
// committed is waited for until it is applied.
//
// Other errors are [ErrMaybeCommitted], [ErrResultUnknown], [ErrNoLeader], [ErrOverloaded], [ErrTooLarge],
// [ErrStopped], [ErrWithinApply] and a [*RefusedError]. The documentation of each says what happened to the command,
// and whether a retry is safe. A result that is an error of the program is no error of Propose.
func (n *Node) Propose(ctx context.Context, command []byte) (any, error) {
	return n.r.Propose(ctx, command, nil)
}

// ProposeAsync is Propose without waiting: done is called once, from an internal loop, and must not block. If
// ProposeAsync returns an error, done is not called: the command was refused and nothing happened. The error is
// [ErrOverloaded], [ErrTooLarge] or [ErrStopped]; done gets those of Propose. The command is copied.
func (n *Node) ProposeAsync(command []byte, done func(result any, err error)) error {
	return n.r.ProposeAsync(command, nil, done)
}

// ProposeBody is Propose for a command with a large part, its body. Apply gets the command and the
// body's name (Command.Body), not its bytes. Every member keeps the bytes whole or as a fragment,
// as Options.Protocol says. [Node.Body] returns them.
//
// The body is kept by reference: it must never change again. An empty body is no body.
func (n *Node) ProposeBody(ctx context.Context, command, body []byte) (any, error) {
	return n.r.Propose(ctx, command, body)
}

// ProposeBodyAsync is ProposeBody without waiting; see ProposeAsync for done. The command
// is copied, the body is not: it must never change again.
func (n *Node) ProposeBodyAsync(command, body []byte, done func(result any, err error)) error {
	return n.r.ProposeAsync(command, body, done)
}

// ProposeWith is Propose, or with a body ProposeBody, for a command with options. With [ModeAccepted] the result may be
// an [*Accepted], before the command is applied: it takes effect exactly once, whatever minority of members crashes
// then, this one included. Its result is never known. Commands that are proposed after that answer may take effect
// before it, and a local read may not see it yet. Protocols without such answers, as Raft, answer when the command is
// applied, with its result. That promises more. A [ProposeOptionsError] says that no one takes these options, and
// nothing happened.
//
// [ProposeOptions.After] names commands by the tokens of their answers: the command takes effect after them. Unless the
// protocol sees to that, it is held back until they are applied on this member. If that takes longer than ctx, or than
// a proposal is tried, the error is a [TokenError], and nothing happened. Commands without tokens do not wait
// meanwhile. [ProposeOptions.Blind] says that the command may take effect in any order with others that were not
// answered, and that no one wants its result; ModeAccepted implies it. [ProposeOptions.Timeout] ends the wait as a
// deadline of ctx would, at less cost.
func (n *Node) ProposeWith(ctx context.Context, command, body []byte, o ProposeOptions) (any, error) {
	return n.r.ProposeWith(ctx, command, body, o)
}

// ProposeWithAsync is ProposeWith without waiting; see ProposeAsync and ProposeBodyAsync. Then
// [ProposeOptions.Wait] bounds for how long the command is held back.
func (n *Node) ProposeWithAsync(command, body []byte, o ProposeOptions, done func(result any, err error)) error {
	return n.r.ProposeWithAsync(command, body, o, done)
}

// AnswersEarly reports whether there are answers with [ModeAccepted] before commands are applied, under the settings
// that are applied here. If not, every answer is that of ModeConfirmed.
func (n *Node) AnswersEarly() bool {
	p := n.r.Profile()
	now := n.opt.choice.Of(&p)
	if p.Version > 0 {
		now.Values = p.Values
	}
	return now.Core.Proposing.With(now.Own()).Accepted
}

// MayAnswerEarly reports whether AnswersEarly may be true on any member, before or after settings were tuned, or may
// have been under an earlier profile.
func (n *Node) MayAnswerEarly() bool {
	p := n.r.Profile()
	return slices.ContainsFunc(append([]protocol.Profile{p}, p.Earlier...), func(p protocol.Profile) bool {
		c := n.opt.choice.Of(&p)
		how := proposing(&c)
		return how.Accepted
	})
}

// Body returns the bytes of a body, verified. They are shared: no one may change them. If this
// member does not hold the body whole, it gathers it from others. If it finds fewer than k good
// fragments within ten seconds or ctx's time, the error is a [*BodyError]; a later call may succeed. After the stop it
// is [ErrStopped], and [ErrNotSent] with a ctx that has ended. A retry is always safe.
func (n *Node) Body(ctx context.Context, ref BodyRef) ([]byte, error) { return n.r.Body(ctx, ref) }

// ReleaseBody indicates that the state machine, which is a [BodyKeeper], does not refer to a body
// any more and never will again, whatever snapshot or file it is restored from. If the state is on
// disk, it must be on disk without the reference before this call. ReleaseBody may be called in
// Apply.
func (n *Node) ReleaseBody(ref BodyRef) { n.r.ReleaseBody(ref) }

// ReadBarrier returns when this member's state machine includes everything that was acknowledged anywhere before the
// call, with its result. A local read after it is linearizable. Commands answered as accepted may be missing: see
// [ReadOptions].
//
// The error is [ErrReadTimeout], joined with ctx's error if that ended, [ErrStopped] or [ErrWithinApply].
// Nothing is known of the state then, and a retry is safe. Without an end of ctx, ReadBarrier gives up after 5 s and
// five election timeouts, 10 s by default, if no leader confirmed the read, also where no leader is known. A read that
// was confirmed waits until this member has applied what it needs.
func (n *Node) ReadBarrier(ctx context.Context) error { return n.r.ReadBarrier(ctx) }

// ReadOptions sets the consistency of a read. The zero value is a linearizable read, as after ReadBarrier.
type ReadOptions struct {
	// After are tokens of commands that were accepted: the read sees these commands, on any member. A token is waited
	// for at most as long as a proposal is tried.
	After []Token
	// Barrier: the read also sees every command that was answered as accepted, on any member, before the
	// read began. It costs more than another read if the protocol spreads commands before it orders
	// them, and nothing more otherwise.
	Barrier bool
	// Local: the read sees what is applied on this member, and the commands of After. No one else is
	// asked. Barrier and Stale have no meaning then.
	Local bool
	// Stale: the read may miss what was acknowledged (with Barrier: accepted) less than this before it. Reads with it are
	// confirmed, as others are, only when the last one that was is older; so with Stale a follower serves many reads
	// for one round trip to the leader. It relies on no clock of another member, and time in which the host sleeps
	// counts on Linux and macOS. 0: the read misses nothing.
	Stale time.Duration
	// Timeout is how long Read waits at most, not counting what it waits for After; 0: as long as [Node.ReadBarrier].
	// It costs less than a context with a deadline, and comes some milliseconds late.
	Timeout time.Duration
	// Stages is set to when the read passed its stages; nil: no one wants to know. An error leaves it, and so does a read
	// that need not be confirmed, because of Local or Stale.
	Stages *ReadStages
}

// Read returns when a local read of the state machine sees what the options want. After an error
// nothing is known of the state; the caller may retry. The errors are those of [Node.ReadBarrier]; a [*TokenError] says
// which command is not applied here, and a [*ProposeOptionsError] that no member ever gave such a token.
func (n *Node) Read(ctx context.Context, o ReadOptions) error {
	if err := n.r.AwaitTokens(ctx, o.After); err != nil || o.Local {
		return err
	}
	if o.Stale > 0 {
		return n.readStale(ctx, &o)
	}
	return n.r.ReadAs(ctx, o.Barrier, o.Timeout, o.Stages)
}

// FormatToken writes a token as text, for later use, on this member or another one.
func FormatToken(t Token) string { return protocol.FormatToken(t) }

// ParseToken reads what FormatToken wrote. The error is a [ProposeOptionsError].
func ParseToken(text string) (Token, error) { return protocol.ParseToken(text) }

// ChangeMembers makes membership changes, several at once jointly, and waits until they are active on this member. It
// may be called on any member. A member that is added needs an ID, and peer URLs, http://host:port or https://host:port
// each. A change that is in effect already succeeds, such as the removal of a member that was removed before. The
// removal of an id that no member ever had is refused with [ReasonUnknownMember]. A member that was opened without
// Listen adds none ([ReasonNoListener]): no other member could connect to it.
//
// With [AddVoter] for a new member it returns when the member is added as a learner (Member.Joining), whether it runs
// or not. The learner becomes a voter on its own when it has caught up: it counts in majorities once Learner is false
// in Status().Members. Wait for that, with [Node.Changes], before you remove another member.
//
// With [RemoveMember] it returns when the cluster continues without the member. A member may remove itself, also the
// leader. The removed member runs on for about an election timeout, to tell others what they need, and stops by itself:
// Done is closed, and Err has an [*ExpelledError]. Its program still calls Close. A member that did not run when it was
// removed stops when it is opened again, or Open refuses it.
//
// A [*RefusedError] explains why nothing was changed; its Retryable says whether to try again. With [ErrNotSent]
// nothing was changed, and a retry is safe. With [ErrMaybeCommitted] the change is active, becomes active, or never
// does: read Status().Members after [Node.ReadBarrier]. A retry of a change that was made is refused, or has no effect.
// Further errors are [ErrStopped] and [ErrWithinApply]. If ctx ends, the error wraps ctx's error too.
func (n *Node) ChangeMembers(ctx context.Context, changes ...Change) error {
	if len(changes) == 0 {
		return &RefusedError{What: "membership change", Reason: protocol.ReasonNoChange}
	}
	for i := range changes {
		if changes[i].Format != 0 { // only the leader knows what all members can read
			return &RefusedError{What: "membership change", Reason: protocol.ReasonInvalidChange}
		}
		if reason := changes[i].Check(); reason != protocol.ReasonNone {
			return &RefusedError{What: "membership change", Reason: reason}
		}
		if checkPeerURLs(changes[i].Member.PeerURLs) != nil || n.addsNowhere(ctx, &changes[i]) {
			return &RefusedError{What: "membership change", Reason: protocol.ReasonPeerURL}
		}
		if changes[i].Adds() && changes[i].Member.ID != n.opt.Self && !n.opt.listens() {
			return &RefusedError{What: "membership change", Reason: protocol.ReasonNoListener}
		}
	}
	return n.r.ChangeMembers(ctx, changes)
}

// addsNowhere reports whether a change adds a member without saying where it is to be found. What is known here may be
// old, so a member that is not known is looked for again after a read.
func (n *Node) addsNowhere(ctx context.Context, c *Change) bool {
	adds := c.Adds() && len(c.Member.PeerURLs) == 0
	known := func() bool {
		config := n.r.Status().Config
		return config.Find(c.Member.ID) != nil || slices.Contains(config.Removed, c.Member.ID)
	}
	return adds && !known() && n.r.ReadBarrier(ctx) == nil && !known()
}

// TransferLeader hands leadership to a voter (0: the most advanced) and waits for it. It
// may be called on any member. The errors are those of [Node.ChangeMembers], or ctx's alone; a retry is always safe. A
// voter that does not run is refused by a [*RefusedError] at once.
func (n *Node) TransferLeader(ctx context.Context, to MemberID) error {
	return n.r.TransferLeader(ctx, to)
}

// Reshape changes the number of instances from which the log is merged. The protocols whose logs can be merged from
// several, [Raft], [CRaft] and [Niagara], can begin with one. Proposals continue meanwhile. It returns when the new
// number is active on this member. It may be called on any member. It is refused while another change of the members or
// of the instances is in progress. The errors are those of [Node.ChangeMembers], ctx's alone, or one that says that the
// new number is decided and not active here yet; a retry with the same number is always safe.
func (n *Node) Reshape(ctx context.Context, instances int) error { return n.r.Reshape(ctx, instances) }

// Ask sends a request to another member's Options.Answer over the members' links, and returns the answer. With
// [ErrNotSent] nothing was sent. After other errors the other member may have answered: whether a retry is safe depends
// on the request. The error of an Answer comes as its text.
func (n *Node) Ask(ctx context.Context, to MemberID, request []byte) ([]byte, error) {
	return n.r.Ask(ctx, to, request)
}

// SetNet changes what this member's links emulate (Experiment.Net) while they are in use; "" ends it. Each
// member delays what it sends, so a cluster's links are changed by telling all its members. An error
// says what is wrong, and nothing changes.
func (n *Node) SetNet(net string) error { return n.r.SetNet(net) }

// Snapshot writes the state machine's state to w, as its [Snapshot] writes it, and returns the position of the last
// command that it includes. It is the state of this member: call [Node.ReadBarrier] before it for one that includes
// everything that was acknowledged. Commands are applied meanwhile. An error says what could not be written; a part may
// have been. It ends early when the member stops. Close does not wait for it: a program waits before it closes what the
// state machine reads.
func (n *Node) Snapshot(ctx context.Context, w io.Writer) (Position, error) {
	return n.r.Snapshot(ctx, w)
}

// CheckState makes this member ask its state machine, which is a [Repairable], whether its state
// is damaged. If it is, the state of another member takes its place. Nothing is applied here until
// then.
func (n *Node) CheckState() { n.r.CheckState() }

// DiskNeed tells how many bytes the member's log should find free where Options.Dir lies. With less the member
// continues as long as it can, and then waits for space.
func (n *Node) DiskNeed() int64 { return n.r.DiskNeed() }

// Changes returns a channel of the caller's own, which holds a token at first and after leader, term or
// membership changed. It is closed when ctx ends or the member has stopped. Tokens are merged while the caller does not
// receive. A Status that is called after a token is received is at least as new as the change:
//
//	for range node.Changes(ctx) {
//		status := node.Status() // compare it with the one before
//	}
//
// At an election the new term comes first, without a leader (Leader is 0), and then the leader.
func (n *Node) Changes(ctx context.Context) <-chan struct{} { return n.r.Changes(ctx) }

// Done returns a channel that is closed when the member has stopped completely, after Close or
// because it cannot continue.
func (n *Node) Done() <-chan struct{} { return n.r.Done() }

// Err tells why the member stopped: nil while it runs, and after Close unless a file or a link could not be closed. It
// is a joined error, for [errors.As]: an [*ExpelledError] if the member was removed, a [*ForgottenError], a
// [*LineageError], a [*StateAheadError], a [*MachineError] if the state machine failed, [net.ErrClosed] if something
// else closed one of its listeners, or an error of the disk.
func (n *Node) Err() error { return n.r.Err() }

// HandOver gives the leadership of every instance that this member leads to other members. It
// returns when that is done, when no one else could lead, or when ctx ends. The member continues
// serving meanwhile. A program that answers clients calls it before it stops serving.
func (n *Node) HandOver(ctx context.Context) { n.r.HandOver(ctx) }

// Drain makes this member lead nothing until Drain(false), or until it stops: it hands over all that it leads, and
// others hand nothing over to it. It continues serving and voting. Drain returns at once; Status().Instances shows the
// instances that it still leads. It keeps those that no other member could lead. The state machine may call it.
func (n *Node) Drain(on bool) { n.r.Drain(on) }

// Close hands leadership over, which takes an election timeout at most. Then it stops the member and waits until its
// files and links are closed. Acknowledged commands are durable already. A program calls it also for a member that
// stopped on its own: then the error is that of [Node.Err]. If the state machine calls it, nothing happens, and the
// error is [ErrWithinApply].
func (n *Node) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), n.r.ElectionTimeout())
	defer cancel()
	n.r.HandOver(ctx)
	return n.r.Close()
}

// MemberIDOf derives a member's id from its name and its cluster's token. Ids may also be numbers that the program
// chooses, except 0.
func MemberIDOf(name, token string) MemberID {
	return MemberID(max(digest("member", name, token), 1))
}

// ClusterIDOf derives a cluster's id from its initial members, and a token that the program chooses. It depends on the
// ID, the Name and the Zone of each member, in any order, and not on URLs. So members that were given different lists
// do not talk to each other: quorums may depend on zones. Members that are added later do not change it: [Status] has
// it.
func ClusterIDOf(members []Member, token string) uint64 {
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	parts := []string{"cluster", token}
	for _, m := range sorted {
		parts = append(parts, m.ID.String(), m.Name)
	}
	for _, m := range sorted {
		if m.Zone != "" {
			parts = append(parts, "zone", m.ID.String(), m.Zone)
		}
	}
	return max(digest(parts...), 1)
}

func digest(parts ...string) uint64 {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s,", len(p), p)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}
