package epaxos

import (
	"fmt"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// Ballot orders attempts to decide a command. 0 is the proposer's own.
type Ballot = slots.Ballot

// Phase is the phase of a command on a member.
type Phase uint8

// The phases.
const (
	Unknown Phase = iota
	Preaccepted
	Accepted
	Decided
)

func (p Phase) String() string {
	return [...]string{"unknown", "preaccepted", "accepted", "decided"}[p]
}

// Command is a proposal of a member, with its initial dependencies. It never changes.
type Command struct {
	Entry   protocol.Entry
	Touches Touches
	First   Vector
}

// Value is the decision for a command: the command, or a no-op in its place, and its dependencies.
type Value struct {
	Command *Command // nil: a no-op
	Deps    Vector
}

// same reports whether two decisions about a command are equal.
func (v Value) same(w Value) bool {
	if a, b := v.Command, w.Command; a == nil || b == nil {
		return a == b
	} else if a.Entry.ID != b.Entry.ID || a.Entry.Digest != b.Entry.Digest {
		return false
	}
	return v.Deps.Equal(w.Deps)
}

// Record is a member's state of a command that it has not executed. It is durable before any message that follows
// from it is sent.
type Record struct {
	ID       ID
	Promised Ballot
	// Ballot is the ballot of the accepted value. It is at most Promised, and only Accept sets it (rule 1).
	Ballot Ballot
	Phase  Phase
	Noop   bool // the accepted or decided value is a no-op
	// Command is known from the proposer, from a recovery that validated it, or because it is accepted. First counts
	// (rule 7) only if Begun: the member got it with PreAccept or Validate.
	Command *Command
	Begun   bool
	Deps    Vector // of the preaccepted, accepted or decided value; never modified

	stored  bool // there is a cell for it
	changed bool // by the current step
	counted int  // its share of EPaxos.ownBytes
}

// Value is the accepted or decided value.
func (r *Record) Value() Value {
	if r.Noop {
		return Value{Deps: r.Deps}
	}
	return Value{r.Command, r.Deps}
}

// begun reports whether more is known of the command than that a member recovers it.
func (r *Record) begun() bool { return r.Phase != Unknown || r.Begun }

// touches are the classes that the command touches, as far as is known.
func (r *Record) touches() Touches {
	if r.Command == nil {
		return nil
	}
	return r.Command.Touches
}

// Replica is an acceptor's state of all commands: the records of those that it has not executed, and its answers.
// Each method that changes a record returns it, to be made durable before the answer is sent.
type Replica struct {
	self    Column
	index   *Index
	columns []column
	mutant  protocol.Mutant
	// reserved: an earlier incarnation may have used numbers of its column up to this one that are not on its disk.
	reserved uint64
	prunable bool // no-ops were executed on which new commands still depend
}

// column has the commands of one column that are not executed.
type column struct {
	executed uint64
	records  []*Record // of numbers from executed+1 on; nil: nothing is known
	// For all records: ID.Number is executed + 1 + its index; at most maxAhead.
}

// maxAhead limits the commands of a column that a member keeps and has not executed. It does not answer about later
// ones; their proposer waits until the member has executed earlier ones.
const maxAhead = 1 << 14

// NewReplica begins after the executed commands, which index has.
func NewReplica(self Column, executed Vector, index *Index, mutant protocol.Mutant) *Replica {
	r := &Replica{self: self, index: index, mutant: mutant}
	for i, n := range executed {
		r.column(Column(i + 1)).executed = n
	}
	return r
}

func (r *Replica) column(c Column) *column {
	for len(r.columns) < int(c) {
		r.columns = append(r.columns, column{})
	}
	return &r.columns[c-1]
}

// Restore adds the record of a command from the disk. Executed commands are skipped.
func (r *Replica) Restore(rec *Record) {
	if r.inWindow(rec.ID) {
		*r.ensure(rec.ID) = *rec
		if rec.begun() {
			r.index.Know(rec.ID, rec.touches())
		}
	}
}

// Executed reports whether a command was executed here.
func (r *Replica) Executed(id ID) bool { return id.Number <= r.column(id.Column).executed }

// inWindow reports whether the member has, or may have, a record of a command.
func (r *Replica) inWindow(id ID) bool {
	executed := r.column(id.Column).executed
	return id.Number > executed && id.Number-executed <= maxAhead
}

// Record is the record of a command; nil: there is none.
func (r *Replica) Record(id ID) *Record {
	c := r.column(id.Column)
	if id.Number <= c.executed || id.Number > c.executed+uint64(len(c.records)) {
		return nil
	}
	return c.records[id.Number-c.executed-1]
}

// ensure returns the record of a command that is not executed, an empty one if there was none.
func (r *Replica) ensure(id ID) *Record {
	if rec := r.Record(id); rec != nil {
		return rec
	}
	c := r.column(id.Column)
	for c.executed+uint64(len(c.records)) < id.Number {
		c.records = append(c.records, nil)
	}
	rec := &Record{ID: id}
	c.records[id.Number-c.executed-1] = rec
	return rec
}

// Window is the highest number of a column that has a record.
func (r *Replica) Window(c Column) uint64 {
	col := r.column(c)
	return col.executed + uint64(len(col.records))
}

// Next is the number of the next command of this member.
func (r *Replica) Next() ID { return ID{r.self, max(r.Window(r.self), r.reserved) + 1} }

// Propose begins a command of this member (rule 2), and sets its first dependencies. nil: there is no space.
func (r *Replica) Propose(cmd *Command) *Record {
	id := r.Next()
	if !r.inWindow(id) {
		return nil
	}
	cmd.First = r.index.Deps(id, cmd.Touches)
	return r.PreAccept(id, cmd)
}

// PreAccept records a proposer's command (rule 3). nil: another ballot was promised, or the command is known: no
// answer is due.
func (r *Replica) PreAccept(id ID, cmd *Command) *Record {
	if !r.inWindow(id) {
		return nil
	}
	if rec := r.Record(id); rec != nil && (rec.Promised != 0 || rec.Phase != Unknown) {
		return nil
	}
	rec := r.ensure(id)
	rec.Phase, rec.Command, rec.Begun = Preaccepted, cmd, true
	rec.Deps = r.index.Deps(id, cmd.Touches).unite(cmd.First).own(id)
	r.index.Know(id, cmd.Touches)
	return rec
}

// Accept accepts a value under a ballot (rule 5). nil: another ballot was promised, or a decision is known.
func (r *Replica) Accept(id ID, ballot Ballot, v Value) *Record {
	if !r.inWindow(id) {
		return nil
	}
	if rec := r.Record(id); rec != nil && (rec.Phase == Decided || rec.Promised > ballot) {
		return nil
	}
	rec := r.ensure(id)
	rec.Promised, rec.Ballot, rec.Phase = ballot, ballot, Accepted
	r.decideRecord(rec, v)
	return rec
}

// Decide records a decision. nil: it is known already.
func (r *Replica) Decide(id ID, v Value) *Record {
	if !r.inWindow(id) {
		return nil
	}
	rec := r.ensure(id)
	if rec.Phase == Decided {
		return nil
	}
	rec.Phase = Decided
	r.decideRecord(rec, v)
	return rec
}

func (r *Replica) decideRecord(rec *Record, v Value) {
	rec.Noop, rec.Deps = v.Command == nil, v.Deps
	if v.Command != nil {
		rec.Command = v.Command
	}
	r.index.Know(rec.ID, rec.touches())
}

// Promise answers Recover (rule 6). The report is the state of the record before; a report without a phase is about a
// command that this member does not know. A repeated request is answered again. nil: a higher ballot was promised, or
// the command was executed.
func (r *Replica) Promise(id ID, ballot Ballot) (*Record, Report) {
	if !r.inWindow(id) {
		return nil, Report{}
	}
	if rec := r.Record(id); rec != nil && rec.Promised > ballot {
		return nil, Report{}
	}
	rec := r.ensure(id)
	report := Report{From: r.self, Ballot: rec.Ballot, Phase: rec.Phase, Value: rec.Value()}
	if r.mutant == MutantOneBallot {
		report.Ballot = rec.Promised
	}
	rec.Promised = ballot
	return rec, report
}

// DecideExecuted records the decision of a command that another member has executed. Its dependencies do not matter
// any more.
func (r *Replica) DecideExecuted(id ID, v Value) *Record {
	rec := r.ensure(id)
	if rec.Phase != Decided {
		rec.Phase, rec.Noop, rec.Deps = Decided, v.Command == nil, nil
	}
	if rec.Command == nil {
		rec.Command = v.Command
	}
	return rec
}

// open is the first command of a column that is neither executed nor a no-op, as far as is known. No-ops at the end
// of a column need not be executed.
func (r *Replica) open(c Column) ID {
	col := r.column(c)
	id := ID{c, col.executed + 1}
	for _, rec := range col.records {
		if rec == nil || rec.Phase != Decided || !rec.Noop {
			break
		}
		id.Number++
	}
	return id
}

// of are the records of a column, ascending.
func (r *Replica) of(c Column) (out []*Record) {
	if c == 0 {
		return nil
	}
	for _, rec := range r.column(c).records {
		if rec != nil {
			out = append(out, rec)
		}
	}
	return out
}

// all are the records of all columns.
func (r *Replica) all() (out []*Record) {
	for i := range r.columns {
		out = append(out, r.of(Column(i+1))...)
	}
	return out
}

// Execute removes the record of a command that was executed. Commands of a column are executed in order.
func (r *Replica) Execute(id ID) *Record {
	c := r.column(id.Column)
	rec := c.records[0]
	c.executed, c.records = id.Number, c.records[1:]
	if rec.Noop {
		r.prunable = true
	} else {
		r.index.Execute(id, rec.Command.Touches)
	}
	return rec
}

// Prune makes new commands independent of no-ops that were executed. It is expensive, and runs only from time to
// time: until then there are more dependencies than needed, and members have different ones.
func (r *Replica) Prune() {
	if !r.prunable {
		return
	}
	r.prunable = false
	r.index.Prune()
	for i := range r.columns {
		for _, rec := range r.columns[i].records {
			if rec != nil && rec.begun() {
				r.index.Know(rec.ID, rec.touches())
			}
		}
	}
}

// Check verifies the invariants.
func (r *Replica) Check() error {
	for i := range r.columns {
		c := &r.columns[i]
		if len(c.records) > maxAhead {
			return fmt.Errorf("%d commands of column %d", len(c.records), i+1)
		}
		for at, rec := range c.records {
			if rec == nil {
				continue
			}
			if want := (ID{Column(i + 1), c.executed + 1 + uint64(at)}); rec.ID != want {
				return fmt.Errorf("the record of %s says %s", want, rec.ID)
			}
			if err := r.checkRecord(rec); err != nil {
				return fmt.Errorf("command %s: %w", rec.ID, err)
			}
		}
	}
	return r.index.check()
}

func (r *Replica) checkRecord(rec *Record) error {
	switch {
	case rec.Ballot > rec.Promised:
		return fmt.Errorf("accepted under %s, promised %s", rec.Ballot, rec.Promised)
	case rec.Phase == Preaccepted && (rec.Ballot != 0 || rec.Noop || !rec.Begun || !rec.Deps.Dominates(rec.Command.First)):
		return fmt.Errorf("preaccepted with %s under %s", rec.Deps, rec.Ballot)
	case rec.Phase >= Accepted && !rec.Noop && rec.Command == nil, rec.Begun && rec.Command == nil:
		return fmt.Errorf("%s, but the command is not known", rec.Phase)
	case rec.Phase >= Preaccepted && !rec.Noop && rec.Deps.At(rec.ID.Column) != rec.ID.Number-1:
		return fmt.Errorf("dependencies %s on its own column", rec.Deps)
	case rec.begun() && !r.index.known.any.Covers(rec.ID):
		return fmt.Errorf("not among what interferes")
	}
	return nil
}
