package check

import (
	"fmt"
	"sync"
)

// Kind is the effect of an operation on its key.
type Kind uint8

// Kinds of operation. A key that was never written, or was deleted, is absent.
const (
	// Get returns the value.
	Get Kind = iota
	// Put sets the value.
	Put
	// Append adds to the end of the value; an absent value is empty.
	Append
	// Delete makes the key absent.
	Delete
	// Swap sets the value if it is Expect (compare and swap).
	Swap
)

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

var kindNames = [...]string{Get: "get", Put: "put", Append: "append", Delete: "delete", Swap: "swap"}

// Outcome is the client's knowledge of the end of its operation.
type Outcome uint8

const (
	// Unknown: no answer arrived. It may have happened, may happen later, or never.
	Unknown Outcome = iota
	// OK: it happened, with the operation's result.
	OK
	// Failed: it certainly did not happen and never will.
	Failed
)

// Operation is one operation of one client, as the client saw it.
type Operation struct {
	Client int
	Kind   Kind
	Key    string
	Value  string // Put, Append, Swap: the value to write
	Expect string // Swap: the value that the key must have

	// Result is the result of a Get. Found: the key of a Get existed, or a Swap was done.
	Result string
	Found  bool
	// Version, unless 0, is the number of writes (of any kind, done or not) to the key up to the operation. If the
	// system returns it, a verdict is found much faster.
	Version uint64

	// Call and Return are instants of one clock, in any unit; an operation that returned
	// at 5 and one that was called at 5 count as concurrent.
	Call, Return int64
	Outcome      Outcome
}

func (o Operation) String() string {
	s := fmt.Sprintf("[%d…", o.Call)
	if o.Outcome == OK {
		s += fmt.Sprint(o.Return)
	}
	s += fmt.Sprintf("] client %d: %s %s", o.Client, o.Kind, o.Key)
	switch o.Kind {
	case Put, Append:
		s += " " + o.Value
	case Swap:
		s += fmt.Sprintf(" %q→%q", o.Expect, o.Value)
	}
	switch {
	case o.Outcome == Unknown:
		return s + " → ?"
	case o.Outcome == Failed:
		return s + " → failed"
	case o.Kind == Get && !o.Found:
		return s + " → absent"
	case o.Kind == Get:
		return s + " → " + o.Result
	case o.Kind == Swap:
		return fmt.Sprintf("%s → %t", s, o.Found)
	}
	return s + " → ok"
}

// Recorder collects a history. It is safe for concurrent use. The zero Recorder is ready.
type Recorder struct {
	mu  sync.Mutex
	ops []Operation
}

// Begin records that a client calls an operation at op.Call and returns its number. Until it ends its outcome is
// unknown.
func (r *Recorder) Begin(op Operation) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	op.Outcome = Unknown
	r.ops = append(r.ops, op)
	return len(r.ops) - 1
}

// End records that operation id succeeded at instant at. result and found are for Get, found is for Swap; version may
// be 0.
func (r *Recorder) End(id int, at int64, result string, found bool, version uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &r.ops[id]
	o.Return, o.Result, o.Found, o.Version, o.Outcome = at, result, found, version, OK
}

// Fail records that operation id certainly did not happen and never will.
func (r *Recorder) Fail(id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops[id].Outcome = Failed
}

// History returns a copy of everything recorded so far, in order of calls.
func (r *Recorder) History() []Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Operation(nil), r.ops...)
}

// Operation returns the current state of operation id.
func (r *Recorder) Operation(id int) Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ops[id]
}
