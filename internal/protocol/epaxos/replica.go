package epaxos

import (
	"fmt"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// Ballot orders attempts to decide a command. 0 is the proposer's own.
type Ballot = slots.Ballot

// Phase is how far a command has come on a member.
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

// same reports whether two decisions about a command are one.
func (v Value) same(w Value) bool {
	if a, b := v.Command, w.Command; a == nil || b == nil {
		return a == b
	} else if a.Entry.ID != b.Entry.ID || a.Entry.Digest != b.Entry.Digest {
		return false
	}
	return v.Deps.Equal(w.Deps)
}

// Record is a member's state of a command that it has not executed. It is durable before any message that follows from
// it leaves.
type Record struct {
	ID       ID
	Promised Ballot
	// Ballot is that of what is accepted. It is at most Promised, and only Accept sets it (rule 1).
	Ballot Ballot
	Phase  Phase
	Noop   bool // accepted or decided is a no-op
	// Command is known from the proposer, from who validated it, or because it is accepted. First counts (rule 7)
	// only if Begun: the member got it with PreAccept or Validate.
	Command *Command
	Begun   bool
	Deps    Vector // of what is preaccepted, accepted or decided; never written to

	stored  bool // there is a cell for it
	changed bool // by the step in progress
	counted int  // how much of EPaxos.own it is
}

// Value is what is accepted or decided.
func (r *Record) Value() Value {
	if r.Noop {
		return Value{Deps: r.Deps}
	}
	return Value{r.Command, r.Deps}
}

// heard reports whether more is known than that someone recovers the command.
func (r *Record) heard() bool { return r.Phase != Unknown || r.Begun }

// touches is what the command touches as far as is known.
func (r *Record) touches() Touches {
	if r.Command == nil {
		return nil
	}
	return r.Command.Touches
}

// Replica is a member's part in all commands: what it has of those that it has not executed, and what it
// answers. Each method that changes a record returns it, to be made durable before the answer leaves.
type Replica struct {
	self    Column
	index   *Index
	columns []column
	mutant  protocol.Mutant
	// reserved: an earlier incarnation may have used numbers of its column up to this one, of which its disk knows
	// nothing.
	reserved uint64
	untidy   bool // no-ops were executed, on which new commands still depend
}

// column has the commands of one column that are not executed.
type column struct {
	executed uint64
	records  []*Record // of executed+1 and on; nil: nothing is known
	// For all records: ID.Number is executed + 1 + its place; at most maxAhead.
}

// maxAhead is how many commands of a column a member keeps that it has not executed. It answers nothing about
// later ones; who proposes waits until it has executed earlier ones.
const maxAhead = 1 << 14

// NewReplica begins after what was executed, of which index knows.
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

// Restore takes back what the disk has of a command. Executed commands are skipped.
func (r *Replica) Restore(rec *Record) {
	if r.takes(rec.ID) {
		*r.touch(rec.ID) = *rec
		if rec.heard() {
			r.index.Know(rec.ID, rec.touches())
		}
	}
}

// Executed reports whether a command was executed here.
func (r *Replica) Executed(id ID) bool { return id.Number <= r.column(id.Column).executed }

// takes reports whether the member keeps, or may keep, anything of a command.
func (r *Replica) takes(id ID) bool {
	executed := r.column(id.Column).executed
	return id.Number > executed && id.Number-executed <= maxAhead
}

// Record is what is kept of a command; nil: nothing.
func (r *Replica) Record(id ID) *Record {
	c := r.column(id.Column)
	if id.Number <= c.executed || id.Number > c.executed+uint64(len(c.records)) {
		return nil
	}
	return c.records[id.Number-c.executed-1]
}

// touch is the record of a command that is not executed, an empty one if there is none.
func (r *Replica) touch(id ID) *Record {
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

// Window is the highest number of a column of which anything is known.
func (r *Replica) Window(c Column) uint64 {
	col := r.column(c)
	return col.executed + uint64(len(col.records))
}

// Next is the number of the next command of this member.
func (r *Replica) Next() ID { return ID{r.self, max(r.Window(r.self), r.reserved) + 1} }

// Propose begins a command of this member (rule 2). Its first dependencies go into it. nil: there is no space.
func (r *Replica) Propose(cmd *Command) *Record {
	id := r.Next()
	if !r.takes(id) {
		return nil
	}
	cmd.First = r.index.Deps(id, cmd.Touches)
	return r.PreAccept(id, cmd)
}

// PreAccept keeps a proposer's command (rule 3). nil: another ballot was promised, or the command is known:
// no answer is due.
func (r *Replica) PreAccept(id ID, cmd *Command) *Record {
	if !r.takes(id) {
		return nil
	}
	if rec := r.Record(id); rec != nil && (rec.Promised != 0 || rec.Phase != Unknown) {
		return nil
	}
	rec := r.touch(id)
	rec.Phase, rec.Command, rec.Begun = Preaccepted, cmd, true
	rec.Deps = r.index.Deps(id, cmd.Touches).unite(cmd.First).own(id)
	r.index.Know(id, cmd.Touches)
	return rec
}

// Accept accepts a value under a ballot (rule 5). nil: another was promised, or a decision is known.
func (r *Replica) Accept(id ID, ballot Ballot, v Value) *Record {
	if !r.takes(id) {
		return nil
	}
	if rec := r.Record(id); rec != nil && (rec.Phase == Decided || rec.Promised > ballot) {
		return nil
	}
	rec := r.touch(id)
	rec.Promised, rec.Ballot, rec.Phase = ballot, ballot, Accepted
	r.take(rec, v)
	return rec
}

// Decide takes a decision. nil: it is known already.
func (r *Replica) Decide(id ID, v Value) *Record {
	if !r.takes(id) {
		return nil
	}
	rec := r.touch(id)
	if rec.Phase == Decided {
		return nil
	}
	rec.Phase = Decided
	r.take(rec, v)
	return rec
}

func (r *Replica) take(rec *Record, v Value) {
	rec.Noop, rec.Deps = v.Command == nil, v.Deps
	if v.Command != nil {
		rec.Command = v.Command
	}
	r.index.Know(rec.ID, rec.touches())
}

// Promise answers Recover (rule 6). The report is what the record was before; a report without phase is of a command
// that this member does not know. A repeated question is answered again. nil: a higher ballot was promised, or the
// command was executed.
func (r *Replica) Promise(id ID, ballot Ballot) (*Record, Report) {
	if !r.takes(id) {
		return nil, Report{}
	}
	if rec := r.Record(id); rec != nil && rec.Promised > ballot {
		return nil, Report{}
	}
	rec := r.touch(id)
	report := Report{From: r.self, Ballot: rec.Ballot, Phase: rec.Phase, Value: rec.Value()}
	if r.mutant == MutantOneBallot {
		report.Ballot = rec.Promised
	}
	rec.Promised = ballot
	return rec, report
}

// Settle takes a command of which someone says that it was executed: it is decided, with which dependencies does not
// matter any more.
func (r *Replica) Settle(id ID, v Value) *Record {
	rec := r.touch(id)
	if rec.Phase != Decided {
		rec.Phase, rec.Noop, rec.Deps = Decided, v.Command == nil, nil
	}
	if rec.Command == nil {
		rec.Command = v.Command
	}
	return rec
}

// open is the first command of a column that is neither executed nor a no-op, as far as is known. No one need execute
// no-ops that come last.
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

// Execute takes a command out: it was executed. Commands of a column are executed in order.
func (r *Replica) Execute(id ID) *Record {
	c := r.column(id.Column)
	rec := c.records[0]
	c.executed, c.records = id.Number, c.records[1:]
	if rec.Noop {
		r.untidy = true
	} else {
		r.index.Execute(id, rec.Command.Touches)
	}
	return rec
}

// Tidy lets new commands no longer depend on no-ops that were executed. It costs more than other steps, and is due
// occasionally: until then there are more dependencies than needed, and members do not have the same ones.
func (r *Replica) Tidy() {
	if !r.untidy {
		return
	}
	r.untidy = false
	r.index.Tidy()
	for i := range r.columns {
		for _, rec := range r.columns[i].records {
			if rec != nil && rec.heard() {
				r.index.Know(rec.ID, rec.touches())
			}
		}
	}
}

// Check verifies what stands under the fields.
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
	case rec.heard() && !r.index.known.any.Covers(rec.ID):
		return fmt.Errorf("not among what interferes")
	}
	return nil
}
