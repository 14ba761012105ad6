package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
)

// demandSameState waits until all members have applied the last writes, including those of clients that gave up.
func demandSameState(w *fault.World, alive []*node.Member) {
	same := func() bool {
		// A write may just have been accepted.
		return !slices.ContainsFunc(fault.Serving(w, alive), (*node.Member).Behind) && w.History.JudgeTold() == nil
	}
	if !w.RunUntil(w.Now()+settleTime(w), same) && w.Broken == nil {
		w.Violate(0, fmt.Errorf("not everybody applies the last writes:%s", describeMembers(w, alive)))
	}
}

// linearTime bounds, in real time, the search for an order. A run passes if there is no result in that time.
const linearTime = 20 * time.Second

func demandVerdict(w *fault.World, alive []*node.Member) { w.Violate(0, finalVerdict(w, alive)) }

// finalVerdict judges the end. All members have the same state, no acknowledged write is lost, and
// the history has an order.
func finalVerdict(w *fault.World, alive []*node.Member) error {
	for _, c := range w.Court.All {
		if err := c.Ledger.Retained(); err != nil {
			return err
		}
	}
	var first *node.Member
	for _, m := range fault.Serving(w, alive) {
		if first == nil {
			first = m
		}
		if err := m.Machines.Same(&first.Machines); err != nil {
			return err
		}
		if err := m.JudgeLastProfile(); err != nil {
			return err
		}
		if err := m.JudgeLogSize(); err != nil {
			return err
		}
		if err := m.JudgeBodyFiles(); err != nil {
			return err
		}
	}
	if err := w.History.JudgeTold(); err != nil {
		return err
	}
	err := check.Linearizable(w.History.Resolve(), linearTime)
	var undecided *check.UndecidedError
	if errors.As(err, &undecided) {
		return nil
	}
	return err
}
