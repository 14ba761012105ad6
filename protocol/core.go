package protocol

import (
	"slices"
	"time"
)

// Core is one instance of a protocol on one member: a pure state machine. The same inputs at the same times always
// have the same effects. A Core is not safe for concurrent use; its owner feeds it from one loop.
type Core interface {
	// Step passes the input in to the core at time now, and adds the core's outputs to out. now is the member's
	// monotonic clock since any origin; it never decreases. It must be read for this step, after in was received:
	// leases depend on it (docs/internals/raft.md).
	Step(now time.Duration, in Input, out *Effects)
	// Check verifies the invariants of the core's fields. Tests and the simulator call it after every step.
	Check() error
	// Status describes the current state of the core.
	Status() Status
}

// Input is an event: one of the types below, or a *Message.
type Input interface{ input() }

// Tick indicates that time passed; it comes at a regular interval, about a tenth of a heartbeat.
type Tick struct {
	// Random is a fresh random number, the core's only source of randomness.
	Random uint64
	// Applied is how far the member has applied this instance; 0: not known, or the order is keyed.
	Applied Index
}

// Wake indicates that the time has come that the core asked for last (Effects.WakeAt). It may come later, and not
// earlier.
type Wake struct{}

// Propose asks to append entries: sealed payloads with ids, without index and term. The core appends them, forwards
// them, or rejects them, according to Status. The proposing member keeps them until they are applied, and may propose
// them again. An entry without an id is dropped and not rejected: the member checks later whether it is still needed
// and proposes it again.
type Propose struct {
	Entries []Entry
	// Options are those of each entry; nil: no entry has any.
	Options []ProposeOptions
	// Under, unless it is nil, is the index of a configuration. The entries are dropped unless this
	// member leads, and that configuration is the newest one in its log, and committed. They are not
	// forwarded.
	Under *Index
}

// OptionsOf returns the options of an entry.
func (p *Propose) OptionsOf(i int) ProposeOptions {
	if p.Options == nil {
		return ProposeOptions{}
	}
	return p.Options[i]
}

// ProposeChange asks for a membership change. Context returns in a Rejection; success
// is seen as a committed EntryConfig with this ID.
type ProposeChange struct {
	Context uint64 // 0: no Rejection is wanted
	ID      ProposalID
	Changes []Change
	// Target, in place of Changes, is the whole configuration to change to. Another instance made it from the one
	// active here, in any number of steps. A target that is older than the active one is refused with
	// ReasonInvalidChange. A follower forwards the target to its leader, which may not know it, and does not learn
	// whether the leader refuses.
	Target *Config
}

// Read asks for a read index (ReadIndex, or a lease where that is set). The ReadIndex or Rejection has the same
// Context.
//
// Barrier: the read also sees everything that was accepted before it (Effects.Accepted), with or without an index. It
// makes no difference in a protocol in which everything accepted is before the read index anyway.
type Read struct {
	Context uint64
	Barrier bool
}

// Persisted indicates that all records up to and including Effects.Seq == Seq are durable.
type Persisted struct{ Seq uint64 }

// Compact indicates that a durable snapshot here covers the entries up to Index, which are not needed any longer.
// Index ≤ the highest committed index.
type Compact struct{ Index Index }

// Meet indicates that a snapshot is due and waits for an entry at which members meet: see [Meeting]. Other cores do
// not get it.
type Meet struct{}

// SnapshotReceived offers a snapshot that the leader of Term sent, which is complete and durable on this member but
// not yet in use. The core takes it (Effects.Install) if it is ahead of what this member knows to be committed. Term
// 0: it was sent for another instance and covers this one's entries too; the leader of this one is unknown.
type SnapshotReceived struct {
	From MemberID
	Term Term
	Base Base
}

// SnapshotSent reports the result of sending a snapshot that the core asked for.
type SnapshotSent struct {
	To    MemberID
	Index Index // the snapshot's base; 0 if it failed
}

// BodyMade brings the whole body of an entry that the core asked for (Effects.Want). The
// owner has verified it against the entry's digest.
type BodyMade struct {
	Index Index
	Term  Term
	Body  []byte
}

// Bodies tells the core about this member's live bodies of committed entries: how many are missing, the largest k
// among them, and the largest k among those that its disk does not hold whole. Restripes is the configuration that
// the member follows ([Config.Restripes]): until it follows another one, it drops no whole copy that this
// configuration demands. The owner steps Bodies when one of these values changed, when an entry was committed that is
// coded or is missing its body, and after an Install or a start from a snapshot; until then the core assumes that
// bodies are missing. Bodies accounts for all effects so far. The core knows of later entries from its log.
type Bodies struct {
	Missing   int
	MaxK      uint8
	Partial   uint8
	Restripes uint32
}

// Unreachable indicates that messages to a member were dropped on this side.
type Unreachable struct{ Member MemberID }

// Unsendable indicates that this member cannot read entries up to Index from its own disk. It has applied them. A
// leader sends a snapshot to a member that needs them.
type Unsendable struct {
	Member MemberID
	Index  Index
}

// Suspect indicates that another instance on this member has lost its leader, which is that member. A core with the
// same leader that was silent here too for an election timeout waits only for its rank (docs/internals/niagara.md,
// 3.4: one failure detector for all instances).
type Suspect struct{ Member MemberID }

// Stand indicates that this member should be the first leader of a new instance. It campaigns without waiting for a
// timeout.
type Stand struct{}

// Place is the place of this instance among the active ones, from 0. It determines the order in which members
// campaign when the leader is gone. Before the first Place an instance uses its id.
type Place struct{ At int }

// Retain lists the members of the other instances, ascending. While they have a member, a leader that has removed it
// continues to send it entries (docs/internals/niagara.md, 3.5).
type Retain struct{ Members []MemberID }

// Transfer asks the leader to transfer leadership to a voter. To == 0: to the most advanced one. Context returns in a
// Rejection; 0: none is wanted. If the log determines the leader, it is refused with ReasonLeaderFollows.
type Transfer struct {
	To      MemberID
	Context uint64
}

// Stopping: this member is about to stop. It is repeated while the member waits for the transfer. If the log
// determines the leader, a core transfers its leadership, so that no member waits for it afterwards. Others ignore
// it: they get a Transfer.
type Stopping struct{}

// Sealed brings the verdict of a seal (see [Seal]), once the order of the instances has come to its place, and the core
// has given out everything up to there (Effects.Commit). Each of the sealed instances gets it. Index is that of the
// EntrySeal, in the instance that has it; in others it has no meaning.
//
// In the step in which an EntrySeal is decided, before a message of that step leaves, a core stops answering reads, by
// index and by lease: it is suspended. From the entry on until the verdict, a leader appends nothing but what begins
// its term or ballot. Proposals, changes and reads are refused with [ReasonSealing]. A core that starts with a decided
// EntrySeal in its log is suspended until it gets the verdict again; so is a core that does not know how far its log is
// decided, once it knows. A core whose base covers the EntrySeal does not know of it.
//
// Counts false: the seal does nothing, and the core resumes. Counts true: the core is closed forever. It grants no vote
// and no promise, acknowledges nothing, confirms no read, and does not campaign. A closed leader may continue to send
// what is decided, and up to where: that is as good as late messages. Compact and requests of snapshots continue. A
// member that starts again closes the core by a new Sealed before any other input. It may come more than once.
type Sealed struct {
	Index  Index
	Counts bool
}

func (*Message) input()         {}
func (Tick) input()             {}
func (Wake) input()             {}
func (Propose) input()          {}
func (ProposeChange) input()    {}
func (Read) input()             {}
func (Persisted) input()        {}
func (Compact) input()          {}
func (Meet) input()             {}
func (SnapshotReceived) input() {}
func (SnapshotSent) input()     {}
func (BodyMade) input()         {}
func (Bodies) input()           {}
func (Unreachable) input()      {}
func (Unsendable) input()       {}
func (Suspect) input()          {}
func (Stand) input()            {}
func (Place) input()            {}
func (Retain) input()           {}
func (Transfer) input()         {}
func (Stopping) input()         {}
func (Sealed) input()           {}

// Effects are the outputs of a core. It is reused: the owner carries out everything, calls Reset
// and passes it to the next steps. Slices belong to the Effects; the messages and entries in them
// may be kept.
type Effects struct {
	// Persist is to be appended to the log on disk, in order. Several steps may be
	// persisted together.
	Persist []Record
	// Seq numbers the last step that added to Persist or Release; see [Persisted].
	Seq uint64
	// Send may leave now. Where an entry's payload or body is not resident, the owner reads it from its disk before
	// sending, and encodes the row that Form demands. If it cannot, it sends FormNone where Index ≤ Message.Commit, and
	// else drops the message.
	Send []*Message
	// Release may leave once everything persisted up to Seq is durable.
	Release []*Message
	// Commit has the entries that are decided: contiguous and in index order over the incarnation of a core, from the
	// base on. Payloads of batches may be not resident, as in Send. Envelopes are encoded, and configurations and
	// seals have their payloads.
	Commit []Entry
	// Reads are read indexes: serve when everything up to Index is applied.
	Reads []ReadIndex
	// Accepted are ids of proposals of this member in ModeAccepted that the core guarantees from now on: all their
	// commands will be committed, whatever crashes the protocol tolerates, and even if this member never recovers.
	// Their time and index are not determined yet. The core neither loses the proposal nor refuses it permanently. A
	// core without such a guarantee does not report it, and the proposal is answered when it is applied. Members ignore
	// ids of other proposals here.
	Accepted []ProposalID
	// Reject are refusals of this member's inputs.
	Reject []Rejection
	// Want asks for whole bodies that this member holds in part: fetch, decode, verify, and step a BodyMade for each.
	// It is repeated until then, or until the core does not need the body any more.
	Want []BodyRef
	// Snapshots asks to send a snapshot to each of these members; every request is
	// answered by a SnapshotSent.
	Snapshots []MemberID
	// Install asks to replace the state machine's state by the snapshot with this base. Commit continues after it;
	// commits before it in the same Effects are void.
	Install *Base
	// Suspect is the leader whose election timer just expired; 0: none. Other instances on this member are to be
	// informed.
	Suspect MemberID
	// WakeAt is the time at which the core wants a Wake; 0: none. It is 0 before each step, and the last step's value
	// counts: a core that still waits sets it again. A time in the past means the next possible moment.
	WakeAt time.Duration
	// Forgot: this member does not hold what it acknowledged to the leader of the term. It must neither vote nor
	// acknowledge any more: the member stops (docs/internals/identity.md).
	Forgot *Forgot
	// Diverged: another member's log differs from this one where both are decided. They are two logs, or one of them is
	// not the decided one: the member stops.
	Diverged *DivergedError
	// Unusable is a [*ProfileError]: a profile became active that this program does not know or does not allow. The
	// core has not used it, and takes no further input: the member stops.
	Unusable error
	// Changed indicates that leader, role, term or configuration changed, or that a new leader truncated the log and
	// will replace the entries later.
	Changed bool
}

// Forgot is the evidence that a member lost acknowledged entries: the leader of the term knows that the member
// acknowledged everything up to Acked, but their logs match up to Last at most.
type Forgot struct {
	Leader      MemberID
	Term        Term
	Acked, Last Index
}

// Reset empties e and keeps its memory for the next step.
func (e *Effects) Reset() {
	clear(e.Send)
	clear(e.Release)
	clear(e.Commit)
	*e = Effects{
		Persist: e.Persist[:0], Seq: e.Seq, Send: e.Send[:0], Release: e.Release[:0], Commit: e.Commit[:0],
		Reads: e.Reads[:0], Accepted: e.Accepted[:0], Reject: e.Reject[:0], Want: e.Want[:0], Snapshots: e.Snapshots[:0],
	}
}

// RecordKind is the type of a record on disk.
type RecordKind uint8

const (
	// RecordEntry appends an entry; it replaces everything from its index on.
	RecordEntry RecordKind = 1 + iota
	// RecordState replaces the hard state.
	RecordState
	// RecordBase restarts the log after a snapshot: all earlier entries are void.
	RecordBase
	// RecordBody replaces the held form of the body of an entry in the log, which stays.
	RecordBody
	// RecordCell writes a cell, and the held form of an entry's body if the cell names one that is not on disk.
	// RecordDrop empties a cell.
	RecordCell
	RecordDrop
)

// Cell is a numbered place alongside an instance's entries, which holds the bytes that were written to it last.
// Neither an entry nor a base changes it. Only the core understands its data: an acceptor keeps there its promises
// and the values that it accepted, for slots that are decided in any order.
type Cell struct {
	Number uint64
	// Data and Rest after it are the bytes, shared and never written to after the step; nil in a RecordDrop. Rest may
	// be a part of an entry, which a core need not copy then. It is nil in what is read from the disk.
	Data, Rest []byte
}

// Bytes returns all bytes of a cell.
func (c *Cell) Bytes() []byte {
	if len(c.Rest) == 0 {
		return c.Data
	}
	return slices.Concat(c.Data, c.Rest)
}

// Record is one thing to make durable.
type Record struct {
	Kind  RecordKind
	Entry Entry     // RecordEntry, RecordBody, RecordCell: with its body in its form
	State HardState // RecordState
	Base  *Base     // RecordBase
	Cell  Cell      // RecordCell, RecordDrop
}

// HardState is the state that an instance must keep across a crash, besides its log.
type HardState struct {
	Term   Term
	Vote   MemberID // the vote in Term; 0: none
	Commit Index    // a lower bound of what is committed; may lag
}

// Base is the position in an instance's log that a snapshot covers: the log begins after it. The zero Base is an
// empty log of a cluster without known members.
type Base struct {
	Index Index
	Term  Term
	// Config is the configuration as of Index. At index 0 it is the instance's first one, with which derived state
	// begins. It is empty on a member that does not know its members yet.
	Config Config
	// Round is the number of rounds of the global log that the instance has filled up to here, perhaps with a part of
	// the entry after Index. A core keeps it and does not use it.
	Round Round `json:",omitempty"`
	// Ended are the instances that a seal ended where this one begins. Only the first record of an instance has them; a
	// core does not use them.
	Ended []EndedLog `json:",omitempty"`
	// Section is the state derived from the log up to here, see [Derived]; zero if the core derives none, or Index is
	// 0. Only the snapshot has it: the log's own record of the base omits it.
	Section Section `json:"-"`
}

// EndedLog is an instance that a seal ended. Everything up to Index is decided, and nothing behind it counts; 0: not
// known.
type EndedLog struct {
	Instance InstanceID
	Index    Index
}

// Recovered is the state from which a core starts: hard state, base and the entries after the base, contiguous.
// Payloads and bodies of batches need not be resident; Form is the form of each body on disk. Cells are those that
// are not empty, in the order of their numbers.
type Recovered struct {
	// Follows: the instance is not the first one of those that make the log. Members change in the first one, and the
	// others follow. A log that was not sealed begins with [FirstInstance].
	Follows bool
	State   HardState
	Base    Base
	Entries []Entry
	Cells   []Cell
}

// ReadIndex answers a Read: a member that has applied everything up to Index serves a
// linearizable read.
type ReadIndex struct {
	Context uint64
	Index   Index
}

// Rejection refuses an input. Exactly one of ID and Context is set.
type Rejection struct {
	// ID is the first refused entry's id (Propose).
	ID ProposalID
	// Context is the refused Read's, ProposeChange's or Transfer's.
	Context uint64
	Reason  Reason
	// Leader is the member to ask instead, if known.
	Leader MemberID
}

// ChangeKind is a kind of membership change.
type ChangeKind uint8

const (
	// AddVoter adds a voter, or makes a learner one.
	AddVoter ChangeKind = 1 + iota
	// AddLearner adds a member that receives the log without voting.
	AddLearner
	// RemoveMember removes a member permanently.
	RemoveMember
	// UpdateMember replaces what Member sets of a member's name and addresses, see
	// [Member.Amend].
	UpdateMember
	// AddJoining adds a learner that becomes a voter by itself once it is caught up.
	AddJoining
	// Tune replaces the profile. It is the only change of its request.
	Tune
)

// Change is one step of a membership change. Several in one request are made at once, jointly.
type Change struct {
	Kind   ChangeKind
	Member Member // only the id, for RemoveMember
	// Lineage names the log's lineage, in an UpdateMember that the cluster makes itself. It has no effect once
	// the log has one.
	Lineage uint64 `json:",omitempty"`
	// Format raises the format in which members write, in an UpdateMember that the cluster makes itself. It has no
	// effect if it is not later.
	Format int `json:",omitempty"`
	// Profile is the profile of a Tune: its version is one more than that of the profile that it replaces. nil in every
	// other change. A protocol ignores Earlier.
	Profile *Profile `json:",omitempty"`
}

// Role is a member's part in one instance.
type Role uint8

// Roles. A PreCandidate asks whether it could win, before it disrupts the cluster.
const (
	Follower Role = iota
	PreCandidate
	Candidate
	Leader
)

func (r Role) String() string {
	return [...]string{"follower", "pre-candidate", "candidate", "leader"}[r]
}

// Status describes an instance on one member.
type Status struct {
	Instance InstanceID
	Self     MemberID
	Role     Role
	Term     Term
	// Ballot: the term is a ballot; see Term.BallotText.
	Ballot bool
	Leader MemberID // 0: none known
	// Routes are the destinations of proposals, by path. nil: the leader takes all of them, in its term.
	Routes []Route
	// Owes: proposals of earlier incarnations of this member may have been answered, and are not applied here. Once it
	// is false it stays so.
	Owes    bool
	First   Index // first index after the base
	Last    Index
	Durable Index // what this member's own disk holds
	Commit  Index
	// Apart: only commands with a common key are ordered, so another member's log may have other entries at an index.
	Apart bool
	// Unwritten is how many of the last committed entries are only in cells, as far as is known, and are written to the
	// log later.
	Unwritten Index
	// Config is the newest configuration in this member's log. ConfigIndex is its index there. Undecided:
	// it is not known here to be committed.
	Config      Config
	ConfigIndex Index
	Undecided   bool
	// Proposed is a membership that this member proposes, or is about to, and that is in no log yet; nil: none.
	Proposed *Config
	// Removed: a committed configuration removed this member permanently, and no earlier one that still decides needs
	// it.
	Removed bool
	// Sealed is what a seal has stopped.
	Sealed SealState
	// Placement is where bodies are kept. K is the k with which a leader would code the next one: 1 for uncoded; 0 on
	// other members.
	Placement string
	K         uint8
	// Preparing is the number of bodies that a new leader must still make whole before it serves.
	Preparing int
	// Lacking: bodies of committed entries are missing here.
	Lacking bool
	// Restriping is, on a leader with a requested membership change, the number of members that must still hold bodies
	// whole before the change.
	Restriping int
	// Peers is the leader's view of the others, sorted by id; nil elsewhere.
	Peers []PeerStatus
	// Lanes is the core's view of lanes; nil if the protocol has none.
	Lanes *LanesStatus
	// Epoch is the core's view of its epoch; nil if the protocol has none, or none has begun.
	Epoch *EpochStatus
}

// Led reports whether a leader is known and, as far as this member knows, enough members are active to decide. Where
// the log determines the leaders, one is known also while too few members are active.
func (s *Status) Led() bool { return s.Leader != 0 && (s.Epoch == nil || !s.Epoch.NoQuorum) }

// BallotText returns the term as Term.BallotText does; "" if it is no ballot.
func (s *Status) BallotText() string {
	if !s.Ballot {
		return ""
	}
	return s.Term.BallotText()
}

// SealState is what a seal has stopped on a core, see [Sealed].
type SealState uint8

const (
	// SealNone: there is no seal without a verdict.
	SealNone SealState = iota
	// SealProposed: an EntrySeal is in the log, and not known to be decided.
	SealProposed
	// SealSuspended: it is decided, without a verdict.
	SealSuspended
	// SealClosed: it counts, and the core has ended.
	SealClosed
)

func (s SealState) String() string {
	return [...]string{"none", "proposed", "suspended", "closed"}[s]
}

// PeerStatus is a leader's view of another member.
type PeerStatus struct {
	ID            MemberID
	Match, Next   Index
	Needs         Index // it needs the log after this, perhaps again; not while Snapshot
	Active        bool  // heard from within an election timeout
	Snapshot      bool  // a snapshot is in progress
	InflightBytes int
	// Lacking: bodies of committed entries are missing there. Whole: up to this index it gets uncommitted bodies whole,
	// because too few members take fragments.
	Lacking bool
	Whole   Index
}
