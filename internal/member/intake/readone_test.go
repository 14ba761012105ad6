package intake

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
)

// oneRule searches all short logs of some instances for a read that asked one of them and does not see all that was
// executed. A member has executed a prefix of each log, the reader has another one of each.
type oneRule struct {
	t         *testing.T
	instances int
	length    int // of a log
	mutant    mutant.Name

	logs     [][]protocol.Entry
	filled   []protocol.Round // by each log
	reshapes bool             // a log changes the number of instances
	prefixes [][]int          // of all logs, of every length
	cursors  []order.Cursor   // of each of them
	served   int              // reads
	missed   int              // of them, that do not see what was executed
}

// entries appends all entries that may come next in a log which fills that many rounds, with the rounds after them.
func (m *oneRule) entries(instance int, filled protocol.Round, try func(e protocol.Entry, filled protocol.Round)) {
	try(protocol.Entry{Kind: protocol.EntryBatch, Count: 1}, filled+1)
	try(protocol.Entry{Kind: protocol.EntryNoop}, filled)
	try(protocol.NewSkip(filled), filled) // late
	try(protocol.NewSkip(filled+2), filled+2)
	if instance == 0 {
		m.reshapes = true
		try(protocol.NewReshape(1), filled+1)
		try(protocol.NewReshape(m.instances+1), filled+1)
		m.reshapes = false
	}
}

// search tries all logs.
func (m *oneRule) search(instance int, filled protocol.Round) {
	switch {
	case instance == m.instances:
		m.read()
		return
	case len(m.logs) == instance:
		m.logs, m.filled = append(m.logs, nil), append(m.filled, 0)
		m.search(instance, 0)
		m.logs, m.filled = m.logs[:instance], m.filled[:instance]
		return
	case len(m.logs[instance]) == m.length:
		m.filled[instance] = filled
		m.search(instance+1, 0)
		return
	}
	before := m.logs[instance]
	m.entries(instance, filled, func(e protocol.Entry, filled protocol.Round) {
		reshapes := m.reshapes
		e.Index, e.Term = protocol.Index(len(before)+1), 1
		m.logs[instance] = append(slices.Clone(before), e)
		m.search(instance, filled)
		m.reshapes = reshapes
	})
	m.logs[instance] = before
}

// place is where a member stands that has a prefix of each log. Instances that begin have skipped far ahead.
func (m *oneRule) place(prefix []int) order.Cursor {
	o := order.NewNiagara(order.Begin(m.instances, true))
	for i, n := range prefix {
		o.Add(protocol.InstanceID(i+1), m.logs[i][:n])
	}
	for begun := protocol.InstanceID(m.instances); ; {
		o.Next(nil)
		at := o.Cursor()
		last := at.Points[len(at.Points)-1].Instance
		if last == begun {
			return at
		}
		begun = last
		skip := protocol.NewSkip(100)
		skip.Index, skip.Term = 1, 1
		o.Add(begun, []protocol.Entry{skip})
	}
}

// read asks each instance after each execution, and looks at the reader in each state.
func (m *oneRule) read() {
	m.cursors = m.cursors[:0]
	for _, p := range m.prefixes {
		m.cursors = append(m.cursors, m.place(p))
	}
	for i, executed := range m.prefixes {
		for j := range m.prefixes {
			for one := range m.instances {
				for index := executed[one]; index <= m.length; index++ { // with many leaders it may be further
					m.ask(protocol.InstanceID(one+1), protocol.Index(index), &m.cursors[i], &m.cursors[j])
				}
			}
		}
	}
	if whole := m.cursors[len(m.cursors)-1]; !m.reshapes && m.mutant == "" {
		least := slices.Index(m.filled, slices.Min(m.filled))
		require.True(m.t, m.reaches(protocol.InstanceID(least+1), protocol.Index(m.length), &whole),
			"%v: no read of the instance with the fewest rounds waits for others", m.logs)
	}
}

func (m *oneRule) reaches(one protocol.InstanceID, index protocol.Index, reader *order.Cursor) bool {
	v := ReadVector{Mutant: m.mutant}
	v.AskOne(0, one)
	v.Point(one, index)
	var few [4]protocol.InstanceID
	shape := few[:0]
	for i := range reader.Points {
		shape = append(shape, reader.Points[i].Instance)
	}
	return !v.Void(shape) && v.Reached(&ReadState{At: reader, Shape: shape})
}

func (m *oneRule) ask(one protocol.InstanceID, index protocol.Index, executed, reader *order.Cursor) {
	if !m.reaches(one, index, reader) {
		return
	}
	m.served++
	if !reader.Before(executed) {
		return
	}
	m.missed++
	if m.mutant == "" {
		require.Fail(m.t, "a read does not see what was executed", "instance %d up to %d of %v: executed %+v, read %+v",
			one, index, m.logs, *executed, *reader)
	}
}

// allPrefixes lists the prefixes of all logs.
func (m *oneRule) allPrefixes() [][]int {
	all := [][]int{nil}
	for range m.instances {
		var next [][]int
		for _, p := range all {
			for n := range m.length + 1 {
				next = append(next, append(slices.Clone(p), n))
			}
		}
		all = next
	}
	return all
}

// TestOneInstanceIsEnoughForARead: docs/internals/niagara.md, 3.3, the rule of one instance. A read index of one
// instance that is not below what any member has of it serves a state that has come to the next slot of this instance.
// It may be above that: with many leaders it is the last slot that a quorum has accepted, decided or not.
func TestOneInstanceIsEnoughForARead(t *testing.T) {
	sizes := []oneRule{{instances: 2, length: 2}, {instances: 2, length: 2, mutant: member.MutantReadShort},
		{instances: 2, length: 3}, {instances: 3, length: 2}}
	sizes = sizes[:testsize.Pick(testsize.Models, 2, 3, 4)]
	for i := range sizes {
		m := &sizes[i]
		m.t, m.prefixes = t, m.allPrefixes()
		m.search(0, 0)
		t.Logf("%d instances, %d entries, mutant %q: %d reads served, %d miss something", m.instances, m.length,
			m.mutant, m.served, m.missed)
		require.Equal(t, m.mutant != "", m.missed > 0)
		require.Positive(t, m.served)
	}
}
