package order

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestWhenToSkip(t *testing.T) {
	for _, c := range []struct {
		why  string
		self protocol.InstanceID
		tail protocol.Round
		want Slot
		idle bool
		to   protocol.Round
	}{
		{"nothing happened anywhere", 2, 0, Slot{}, true, 0},
		{"the first batch", 2, 0, Slot{1, 1}, true, 1 + Ahead},
		{"still far enough ahead", 2, 1 + Ahead, Slot{1 + Ahead/2, 1}, true, 0},
		{"not any more, though nobody waits", 2, 1 + Ahead, Slot{2 + Ahead/2, 1}, true, 2 + Ahead/2 + Ahead},
		{"busy: nobody waits", 2, 9, Slot{10, 1}, false, 0},
		{"busy: its slot comes before the one that is wanted", 1, 9, Slot{10, 2}, false, 10},
		{"busy: its slot comes after", 2, 8, Slot{10, 1}, false, 9},
		{"busy: its own slot is filled", 1, 10, Slot{10, 2}, false, 0},
		{"a reshape wants whole rounds", 2, 8, Slot{10, 0}, false, 9},
		{"a reshape wants no more", 2, 9, Slot{10, 0}, false, 0},
	} {
		to, ok := Skip(c.self, c.tail, c.want, c.idle)
		require.Equal(t, c.to, to, c.why)
		require.Equal(t, c.to > 0, ok, c.why)
		require.True(t, !ok || to > c.tail, "N4: a skip goes forward")
	}
}

// simulation is a cluster of members whose instances have stable leaders: logs, the part of them that each member
// has, and skips by the rule. Time is counted in steps.
type simulation struct {
	t       *testing.T
	now     int
	leaders []int // of instance i+1
	logs    [][]protocol.Entry
	born    [][]int // when an entry was appended
	// away[m][r] is the delay of an entry of an instance to a member, commit[r] the time until it is committed on its
	// leader.
	away   [][]int
	commit []int
	tails  [][]*Tail // of each member
	orders []*Niagara
	skips  []int // of each instance
	waited []int // times of batches on their leader's member from append to place
}

func newLooms(t *testing.T, leaders []int, members int, delay func() int) *simulation {
	l := &simulation{t: t, leaders: leaders}
	l.logs, l.born = make([][]protocol.Entry, len(leaders)), make([][]int, len(leaders))
	l.skips = make([]int, len(leaders))
	for range leaders {
		l.commit = append(l.commit, 2+delay())
	}
	for m := range members {
		away, tails := make([]int, len(leaders)), make([]*Tail, len(leaders))
		for r := range leaders {
			if tails[r] = NewTail(protocol.InstanceID(r+1), &protocol.Base{}, false); leaders[r] != m {
				away[r] = 1 + delay()
			}
		}
		l.away, l.tails = append(l.away, away), append(l.tails, tails)
		l.orders = append(l.orders, NewNiagara(Begin(len(leaders), true)))
	}
	return l
}

func (l *simulation) append(r int, e protocol.Entry) {
	e.Index = protocol.Index(len(l.logs[r]) + 1)
	l.logs[r], l.born[r] = append(l.logs[r], e), append(l.born[r], l.now)
	l.tails[l.leaders[r]][r].Append(&e)
}

// step advances the time by one unit.
func (l *simulation) step() {
	l.now++
	for m, tails := range l.tails {
		for r, tail := range tails {
			for end := int(tail.End()); end < len(l.logs[r]) && l.born[r][end]+l.away[m][r] <= l.now; end++ {
				tail.Append(&l.logs[r][end])
			}
			committed := int(tail.committed)
			for committed < int(tail.End()) && l.born[r][committed]+l.commit[r]+l.away[m][r] <= l.now {
				committed++
			}
			tail.Committed(protocol.Index(committed))
			l.orders[m].Add(protocol.InstanceID(r+1), l.logs[r][l.orders[m].Added(protocol.InstanceID(r+1)):committed])
		}
		for _, p := range l.orders[m].Next(nil) {
			if r := int(p.Instance) - 1; l.leaders[r] == m {
				l.waited = append(l.waited, l.now-l.born[r][p.Entry.Index-1])
			}
		}
		require.NoError(l.t, l.orders[m].Check())
	}
	for r := range l.leaders {
		l.skip(r)
	}
}

// skip is instance.Instance.Weave.
func (l *simulation) skip(r int) {
	var want Slot
	own := l.tails[l.leaders[r]][r]
	for o, tail := range l.tails[l.leaders[r]] {
		if o != r && tail.Want().Compare(want) > 0 {
			want = tail.Want()
		}
	}
	if own.Skipping() {
		return // at most one is in progress
	}
	if to, ok := Skip(protocol.InstanceID(r+1), own.Round(), want, !own.Busy()); ok {
		l.append(r, protocol.NewSkip(to))
		l.skips[r]++
	}
}

func (l *simulation) batches(r int) (n int) {
	for i := range l.logs[r] {
		if l.logs[r][i].Kind == protocol.EntryBatch {
			n++
		}
	}
	return n
}

// placed is the number of batches that a member has placed: here every batch is one command.
func (l *simulation) placed(m int) int { return int(l.orders[m].Cursor().Position) }

func (l *simulation) total() (n int) {
	for r := range l.logs {
		n += l.batches(r)
	}
	return n
}

// longest is the longest time that a batch may take: until it is appended on the member of a leader that must skip,
// which may have a skip in progress, and until that leader's skip is committed and arrives.
func (l *simulation) longest() int {
	away := 0
	for m := range l.away {
		away = max(away, slices.Max(l.away[m]))
	}
	return 2*away + 2*slices.Max(l.commit) + 4
}

// For any mix of idle and busy instances: every batch is placed soon (no stall), an instance does not skip more often
// than others have batches (no chase), and without batches there are no skips.
func TestInstancesNeitherStallNorChase(t *testing.T) {
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 8))
		members := 1 + rng.IntN(4)
		leaders := make([]int, 1+rng.IntN(6))
		if rng.IntN(2) == 0 { // spread
			for r := range leaders {
				leaders[r] = r % members
			}
		}
		l := newLooms(t, leaders, members, func() int { return rng.IntN(6) })
		pace := make([]int, len(leaders)) // batches in a hundred steps
		for range 6 {
			for r := range pace {
				pace[r] = []int{0, 0, 1, 10, 60, 300}[rng.IntN(6)]
			}
			for range 150 {
				l.step()
				for r := range pace {
					for n := rng.IntN(100); n < pace[r]; n += 100 {
						l.append(r, batch(0, 1))
					}
				}
			}
		}
		for range l.longest() {
			l.step()
		}
		total := l.total()
		for m := range members {
			require.Equal(t, total, l.placed(m), "seed %d: member %d", seed, m)
		}
		for r := range leaders {
			require.LessOrEqual(t, l.skips[r], total-l.batches(r), "seed %d: instance %d", seed, r+1)
		}
		if total > 0 {
			require.LessOrEqual(t, slices.Max(l.waited), l.longest(), "seed %d", seed)
		}
		before := slices.Clone(l.skips)
		for range 500 {
			l.step()
		}
		require.Equal(t, before, l.skips, "seed %d: skips of an idle cluster", seed)
	}
}

// One command after the other on one instance: the others skip once for many of them, and only the first command that
// needs a skip waits for it (the very first slot is instance 1's).
func TestALoneClientDoesNotWaitForSkips(t *testing.T) {
	const commands = 1000
	for _, leaders := range [][]int{{0, 0, 0, 0}, {0, 1, 2, 0}} {
		for lone := range leaders {
			t.Run(fmt.Sprint(leaders, lone+1), func(t *testing.T) {
				l := newLooms(t, leaders, 3, func() int { return 3 })
				for n := range commands {
					l.append(lone, batch(0, 1))
					for limit := l.now + l.longest(); l.placed(leaders[lone]) <= n; {
						require.Less(t, l.now, limit)
						l.step()
					}
				}
				for r := range leaders {
					if r != lone {
						require.LessOrEqual(t, l.skips[r], 1+commands/(Ahead/2))
					}
				}
				require.Zero(t, l.skips[lone])
				require.Equal(t, l.commit[lone], slices.Max(l.waited[2:]), "as if it were alone")
			})
		}
	}
}

// A rarely used instance, in whose log others were faster: it continues in a far round, and the others follow at
// once, with one skip each.
func TestABatchInAFarRoundIsFollowedAtOnce(t *testing.T) {
	l := newLooms(t, []int{0, 0, 0}, 1, func() int { return 3 })
	for n := range 50 {
		r := n % 2
		l.append(r, batch(0, 1))
		for l.placed(0) <= n {
			l.step()
		}
		require.LessOrEqual(t, l.waited[n], 1+l.commit[0], "one skip of the others, at once")
	}
	require.LessOrEqual(t, l.skips[0]+l.skips[1], 50)
	require.LessOrEqual(t, l.skips[2], 50)
}

// A SkipTo in a suffix that a new leader replaces is decided again, once.
func TestASkipThatIsLostIsDecidedAgain(t *testing.T) {
	tail := NewTail(2, &protocol.Base{}, false)
	decide := func() (protocol.Round, bool) {
		if tail.Skipping() {
			return 0, false
		}
		return Skip(2, tail.Round(), Slot{7, 1}, !tail.Busy())
	}
	to, ok := decide()
	require.True(t, ok)
	skip := protocol.NewSkip(to)
	skip.Index = 1
	tail.Append(&skip)
	_, ok = decide()
	require.False(t, ok, "one is under way")

	tail.Append(&protocol.Entry{Index: 1, Kind: protocol.EntryNoop}) // a new leader's first
	again, ok := decide()
	require.True(t, ok)
	require.Equal(t, to, again)
	skip.Index = 2
	tail.Append(&skip)
	tail.Committed(2)
	_, ok = decide()
	require.False(t, ok, "nothing is missing")
}
