package braid

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/protocol"
)

// MemberID names a member of a cluster. 0 names none. An id is never used again, also not for a member that takes the
// place of one that was removed. Its String is hexadecimal, as etcd prints it. See [MemberIDOf].
type MemberID = protocol.MemberID

// Member is a member as the cluster's membership has it. What a program sets:
//
//	ID         MemberID
//	Name       string   // for people, and part of [ClusterIDOf] for the first members
//	PeerURLs   []string // where other members reach it: http://host:port, or https:// with Options.TLS
//	ClientURLs []string // where clients reach it; the log makes no use of them
//	Zone       string   // where it is, as in eu-west-1: at most 64 letters, digits, '.', '_' and '-'; "": not known
//
// The other fields are the cluster's own, and are set in [Status].Members only:
//
//	Learner    bool     // it receives the log, but neither votes nor counts for a majority
//	Joining    bool     // the learner was added as a voter, and becomes one when it has caught up
//	Log        LogID    // the identity of its log; it never changes
//	Slot       uint8    // which fragment of large bodies it holds
//	WholeAbove uint8    // it holds bodies of more fragments than this as a whole; 0: never
//
// Quorums by zones and in a grid depend on the zones: see
// https://github.com/braidlog/braid/blob/main/docs/using/multi-paxos.md.
//
// Amend and Amended are for the cluster's own use.
type Member = protocol.Member

// Change is one step of a membership change, for [Node.ChangeMembers]:
//
//	Kind   ChangeKind // AddVoter, AddLearner, RemoveMember or UpdateMember
//	Member Member     // only its ID for RemoveMember
//
// Lineage, Format and Profile are the cluster's own. Check returns why the change makes no sense in any cluster, Adds
// whether it makes a member of one that may be none yet.
type Change = protocol.Change

// ChangeKind is a kind of membership change, for [Change].
type ChangeKind = protocol.ChangeKind

// LogID is the identity of a member's log, random and made with its directory. A member that begins again with a new
// directory has another one. IsZero reports that none is known. String is hexadecimal, as are MarshalText and
// UnmarshalText.
type LogID = protocol.LogID

// Kinds of membership change.
const (
	// AddVoter adds a member, or promotes a learner. A member that is added as a voter is a learner until it has caught
	// up: see [Node.ChangeMembers].
	AddVoter = protocol.AddVoter
	// AddLearner adds a member that receives the log but does not vote.
	AddLearner = protocol.AddLearner
	// RemoveMember removes a member permanently. It stops by itself: see [Node.ChangeMembers]. Its id is never used
	// again.
	RemoveMember = protocol.RemoveMember
	// UpdateMember replaces a member's name, URLs and zone. Fields that are empty stay as they are.
	UpdateMember = protocol.UpdateMember
)

// Position numbers the commands of the log, from 1. It is the same on every member, and strictly increasing; numbers
// may be left out.
type Position = protocol.Position

// InstanceID numbers the instances of the protocol that make the log, from 1. Most protocols have one.
type InstanceID = protocol.InstanceID

// Index numbers the entries of one instance's log, from 1.
type Index = protocol.Index

// Term numbers the terms of leaders of one instance. A term has one leader at most. BallotText formats it as a ballot,
// for protocols with ballots.
type Term = protocol.Term

// Command is one command that [StateMachine.Apply] is given:
//
//	Position Position // where the command is in the log
//	Data     []byte   // what was proposed; valid until Apply returns
//	Body     *BodyRef // names the command's body, for [Node.Body]; nil: it has none
//	Result   any      // set by Apply in the slice's element, and returned by Propose where the command was proposed
type Command = member.Command

// StateMachine is what a program implements: the state that the log's commands change.
//
//	Apply(commands []Command) error
//	Snapshot() (Snapshot, error)
//	Restore(r io.Reader) error
//
// All calls come from one goroutine, one after the other. Only [Snapshot].WriteTo runs while Apply continues. Reads by
// the program come from other goroutines: they need a lock against Apply and Restore.
//
// Apply applies commands in order and sets their results, commands[i].Result: the copy in a "for _, c := range" loop
// would lose them. It is given as many as wait, up to some MiB. It must depend
// on nothing but the state and the commands: no clock, no random numbers, no order of a map, because every member must
// come to the same state. A command that is refused is no error of Apply: the refusal is its Result. A state machine
// that cannot continue, because its disk failed, returns an error, which stops the member with a [MachineError]. A
// panic ends the process. Apply must not wait for the log, as Propose, reads and membership changes do: they return
// [ErrWithinApply] when they are called from the goroutine of Apply. ProposeAsync may be called.
//
// Snapshot returns a view of the state as it is now. It should be quick, because no command is applied meanwhile. The
// view is written later, while Apply changes the state: it is a copy, or refers to a structure that never changes.
//
// Restore replaces the state by one that a Snapshot wrote, here or on another member. The bytes were verified before.
// If they were damaged since, r ends with an error instead of io.EOF: a state that is kept on disk becomes valid after
// io.EOF. A Restore that returns earlier is no error: the member reads and verifies the rest, and refuses it if it is
// damaged. Whether bytes may follow the state is for Restore to check, because a file of [RestoreFile] may have any
// content.
//
// A state machine may implement [DurableStateMachine], [Repairable] and [BodyKeeper], too. Without the first the state
// is in memory: after a restart the member restores the last snapshot and applies the log after it.
type StateMachine = member.StateMachine

// Snapshot is a view of a state machine: the state as it was when the view was taken.
//
//	WriteTo(ctx context.Context, w io.Writer) error
//	Close() error
//
// WriteTo writes the view, from another goroutine than Apply's and while that continues, and stops early with ctx's
// error when ctx is done.
// Close frees the view. It is called once, after WriteTo if that was called.
type Snapshot = member.Snapshot

// DurableStateMachine is a [StateMachine] that keeps its state on disk. After a restart the log continues after Applied
// instead of from a snapshot.
//
//	Applied() Position
//	Sync() error
//
// Applied returns the position of the last command that the state includes; 0: none. It is called when the member
// starts; commands up to it are not applied again. A state that includes more than the log has is refused by a
// [DirError], or stops the member with a [StateAheadError] once it is known that the other members do not have it
// either.
//
// Sync makes durable what was applied. The log may then be cut there.
type DurableStateMachine = member.DurableStateMachine

// Repairable is a [DurableStateMachine] that can find out that its state is damaged. Then Apply, Sync and Snapshot
// return errors, and Applied has no meaning, until Restore was given the state of another member.
//
//	Damaged() error
//	Condemn(cause error)
//
// Damaged returns why the state cannot be used, nil if it can. Condemn says that it cannot, because members differ.
type Repairable = member.Repairable

// BodyKeeper is a [StateMachine] that continues to refer to bodies. It owns the body of every command that Apply was
// given, whether it refers to it or not, until it calls [Node.ReleaseBody]. The bodies of other state machines are kept
// as long as the log has their commands.
//
//	LiveBodies(yield func(BodyRef)) error
//
// LiveBodies calls yield with every body that the state refers to. It is called when the member starts, and after
// Restore.
type BodyKeeper = body.BodyKeeper

// Born is a [Repairable] state machine that may begin with a state that no command led to, as one that was restored
// from a backup. All first members of a cluster must begin with the same one.
//
//	Birth() string
//
// Birth names the state with which it began: the same name for the same state, such as a digest; "": an empty one.
type Born = cluster.Born

// Versioned is a [DurableStateMachine] whose commands have versions. There is no link between a member that applied a
// command of a version and a member that does not know the version, because their states would differ. All members must
// know a version before the first command of it is proposed: [Node.Ask] can ask them.
//
//	StateVersion() (needed, known uint8)
//
// StateVersion returns the newest version among the commands that were applied, and the newest that this program knows:
// 0 to 3. Programs without the method know 0. The first may grow and never decreases; it includes the version of a
// command before the command is answered. StateVersion is called concurrently with all other methods.
type Versioned = member.Versioned

// BodyRef names the body of a command that was applied, for [Node.Body] and [Node.ReleaseBody]. It is comparable, and
// may be kept in the state.
//
//	Instance InstanceID // with Index and Term: the entry of the log to which the body belongs
//	Index    Index
//	Term     Term
//	K        uint8  // how many fragments make it whole; 1: it is not cut
//	Size     uint32 // in bytes
//	Digest   uint32 // CRC-32C
type BodyRef = protocol.BodyRef

// ProposeOptions are the options of a proposal, for [Node.ProposeWith]. The zero value is that of [Node.Propose].
//
//	Mode    Mode          // when the proposal is answered: ModeConfirmed or ModeAccepted
//	Blind   bool          // no result is wanted, and the command may take effect in any order with others
//	Keys    []uint64      // hashes of all keys that the command reads or writes; none: it may touch any
//	After   []Token       // commands that take effect before it, by the tokens of their answers
//	Wait    time.Duration // how long it is held back for After at most; 0: as long as it is tried to propose it
//	Timeout time.Duration // how long ProposeWith waits for the answer, after Wait, at most; 0: until its context ends
//	Stages  *Stages       // set by ProposeWith to when the command passed its stages; nil: no one wants to know
//
// ModeAccepted implies Blind. Add, Bytes, Clone, Plain, Takes and Validate are for protocols.
type ProposeOptions = protocol.ProposeOptions

// Stages are when a command passed the stages of its proposal, since ProposeWith was called, for [ProposeOptions]. 0:
// that is not known. With an [*Accepted] nothing is set. With an error Proposed alone may be set, and then the command
// was not known to be committed.
//
//	Proposed  time.Duration // it was given to the protocol, for the last time if that was repeated
//	Appended  time.Duration // this member's log had it; 0 if another one appended it first, or it was committed before
//	Committed time.Duration // this member knew that it is committed
//	Ordered   time.Duration // it had its position in the global log, and the state machine began with it
//	Applied   time.Duration // the state machine had a result, for a large batch that of its first part
type Stages = protocol.Stages

// ReadStages are when a read passed its stages, since it began, for [ReadOptions]. 0: that is not known.
//
//	Asked     time.Duration // the protocol was asked up to where the state must be applied
//	Confirmed time.Duration // that is known of all instances
//	Served    time.Duration // this member has applied so far
type ReadStages = protocol.ReadStages

// Mode says when a proposal is answered, for [ProposeOptions].
type Mode = protocol.Mode

// Modes of [ProposeOptions].
const (
	// ModeConfirmed: the proposal is answered with its result, when it is applied on this member.
	ModeConfirmed = protocol.ModeConfirmed
	// ModeAccepted: the proposal may be answered by an [*Accepted] earlier, as soon as it certainly takes effect.
	ModeAccepted = protocol.ModeAccepted
)

// Token names a command that was accepted and may not be applied yet. See [ProposeOptions], [ReadOptions] and
// [FormatToken].
type Token = protocol.Token

// MaxTokens is how many tokens a proposal or a read names at most.
const MaxTokens = protocol.MaxTokens

// Accepted is the answer to a command in [ModeAccepted], without a result. The command takes effect exactly once.
//
//	Token Token // names the command, for what is to happen after it
type Accepted = intake.Accepted

// InstanceStatus is the member's view of an instance of the log; see protocol.Status for its fields, and for Led.
type InstanceStatus = protocol.Status

// LanesStatus is the member's view of lanes, on which followers of protocol "lcr" replicate commands that the leader
// only confirms; see protocol.LanesStatus for its fields, and
// https://github.com/braidlog/braid/blob/main/docs/internals/lcr.md.
type LanesStatus = protocol.LanesStatus

// EpochStatus is the member's view of the epoch of protocol "iss"; see protocol.EpochStatus for its fields, and
// https://github.com/braidlog/braid/blob/main/docs/internals/iss.md.
type EpochStatus = protocol.EpochStatus

// EpochSettings say how protocol "iss" cuts its log into epochs, and who leads in them
// (https://github.com/braidlog/braid/blob/main/docs/internals/iss.md). They are the same on all members, and never
// change. The zero value of a field means its default.
//
//	MinSlots, MaxSlots int    // bounds of how many slots of an epoch a leader has: powers of two
//	EqualShares        bool   // every leader has a full share, whatever its load is
//	Policy             string // who leads: "simple", "backoff", "blacklist" or "combined"
//	Ban, MaxBan        int    // for how many epochs a leader that crashed does not lead, the first time and at most
//
// Its String has what is not a default.
type EpochSettings = protocol.EpochSettings
