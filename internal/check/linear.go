package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// NotLinearizableError indicates that no order of the operations on a key explains what its clients
// saw.
type NotLinearizableError struct {
	Key string
	Ops []Operation // every relevant operation on the key, by call
}

func (e *NotLinearizableError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "history of key %q is not linearizable:", e.Key)
	ops := e.Ops
	if len(ops) > longHistory {
		order, at := versionOrder(ops)
		ops = order[max(0, at-longHistory/2):min(len(order), at+longHistory/4)]
		fmt.Fprintf(&b, " of %d operations those about the first that does not fit, by version:", len(e.Ops))
	}
	for i := range ops {
		fmt.Fprintf(&b, "\n  %s", ops[i])
	}
	return b.String()
}

// longHistory limits the printed operations.
const longHistory = 40

// UndecidedError indicates that the search for an order took longer than allowed.
type UndecidedError struct{ Key string }

func (e *UndecidedError) Error() string {
	return fmt.Sprintf("history of key %q: no verdict in the time allowed", e.Key)
}

// Linearizable reports whether every key's operations could have happened one at a time,
// each between its call and its return. Operations of unknown outcome may have happened
// at any time after their call, or never. It spends at most timeout on a key (0: no
// limit) and returns a [*NotLinearizableError], an [*UndecidedError] or nil.
func Linearizable(history []Operation, timeout time.Duration) error {
	for _, ops := range byKey(history) {
		ops = relevant(ops)
		if versionsExplain(ops) {
			continue
		}
		if versionsContradict(ops) {
			return &NotLinearizableError{Key: ops[0].Key, Ops: ops}
		}
		switch porcupine.CheckOperationsTimeout(register, operations(ops), timeout) {
		case porcupine.Illegal:
			return &NotLinearizableError{Key: ops[0].Key, Ops: ops}
		case porcupine.Unknown:
			return &UndecidedError{Key: ops[0].Key}
		}
	}
	return nil
}

// versionsExplain reports whether the versions that the system returned are an order that explains the results. It
// needs no search. If they are not, or some operations returned none, there may still be an order.
func versionsExplain(ops []Operation) bool {
	order, fit := versionOrder(ops)
	return fit == len(order)
}

// versionsContradict reports whether only the order of the versions could explain the results, because every write
// returned its version, and it does not. A read of an absent key without a version may have several places, so it is
// left out.
func versionsContradict(ops []Operation) bool {
	if slices.ContainsFunc(ops,
		func(o Operation) bool { return o.Outcome != OK || o.Version == 0 && (o.Kind != Get || o.Found) }) {
		return false
	}
	return !versionsExplain(slices.DeleteFunc(slices.Clone(ops), func(o Operation) bool { return o.Version == 0 }))
}

// versionOrder returns the operations by their versions, and how many of them fit.
func versionOrder(ops []Operation) (order []Operation, fit int) {
	order = slices.Clone(ops)
	slices.SortStableFunc(order, func(a, b Operation) int {
		// A write creates the version, reads see it.
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(boolToInt(a.Kind == Get), boolToInt(b.Kind == Get)),
			cmp.Compare(a.Call, b.Call))
	})
	v, called := value{}, int64(math.MinInt64)
	for i := range order {
		o := &order[i]
		if o.Outcome != OK || o.Kind != Get && o.Version == 0 || o.Return < called {
			return order, i // an earlier one in the order was called only after this one had returned
		}
		ok, next := step(v, o)
		if !ok {
			return order, i
		}
		v, called = next, max(called, o.Call)
	}
	return order, len(order)
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// byKey splits a history by key, keys in order of first use.
func byKey(history []Operation) [][]Operation {
	at := map[string]int{}
	var keys [][]Operation
	for _, op := range history {
		i, ok := at[op.Key]
		if !ok {
			i = len(keys)
			at[op.Key] = i
			keys = append(keys, nil)
		}
		keys[i] = append(keys[i], op)
	}
	return keys
}

// relevant drops operations that cannot change the verdict on one key: failed ones, reads without an answer, and
// writes without an answer that no read ever saw. These writes make the search explode. Dropping them is sound. If an
// order with an unseen write exists, no reads are between it and the next write, so the order without it explains the
// same. If an order without it exists, it can be added at the end. A Swap observes without reading, and so does an
// operation that returns a version: then all writes are kept.
func relevant(ops []Operation) []Operation {
	observed := slices.ContainsFunc(ops, func(o Operation) bool { return o.Kind == Swap || o.Version != 0 })
	seen := func(v string) bool {
		return slices.ContainsFunc(ops, func(o Operation) bool {
			return o.Kind == Get && o.Outcome == OK && strings.Contains(o.Result, v)
		})
	}
	return slices.DeleteFunc(slices.Clone(ops), func(o Operation) bool {
		switch {
		case o.Outcome == OK:
			return false
		case o.Outcome == Failed || o.Kind == Get:
			return true
		}
		return !observed && (o.Kind == Put || o.Kind == Append) && !seen(o.Value)
	})
}

func operations(ops []Operation) []porcupine.Operation {
	out := make([]porcupine.Operation, len(ops))
	for i := range ops {
		o := &ops[i]
		out[i] = porcupine.Operation{ClientId: o.Client, Input: o, Call: o.Call, Return: o.Return}
		if o.Outcome == Unknown {
			out[i].Return = math.MaxInt64
		}
	}
	return out
}

// value is the state of one key.
type value struct {
	text    string
	found   bool
	version uint64
}

// register is the sequential specification of one key. The operation carries its result,
// so the output is not used.
var register = porcupine.Model{
	Init: func() any { return value{} },
	Step: func(state, input, _ any) (bool, any) {
		ok, next := step(state.(value), input.(*Operation))
		return ok, next
	},
	DescribeOperation: func(input, _ any) string { return input.(*Operation).String() },
}

func step(v value, o *Operation) (bool, value) {
	if o.Kind == Get {
		return o.Found == v.found && o.Result == v.text && (o.Version == 0 || o.Version == v.version), v
	}
	v.version++
	if o.Version != 0 && o.Version != v.version {
		return false, v
	}
	switch o.Kind {
	case Put:
		v.text, v.found = o.Value, true
	case Append:
		v.text, v.found = v.text+o.Value, true
	case Delete:
		v.text, v.found = "", false
	case Swap:
		match := v.found && v.text == o.Expect
		if o.Outcome == OK && o.Found != match {
			return false, v
		}
		if match {
			v.text = o.Value
		}
	}
	return true, v
}
