package epaxosmodel

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/braidlog/braid/internal/explore"
	"github.com/braidlog/braid/internal/testsize"
)

// TestMain keeps a deep search below 4 GB.
func TestMain(m *testing.M) {
	flag.Parse()
	if testsize.Runs(testsize.Deep) {
		debug.SetMemoryLimit(3 << 30)
	}
	m.Run()
}

func (m *model) space() explore.Space[cluster, step] {
	return explore.Space[cluster, step]{Each: m.each, Describe: step.String, Judge: m.judge}
}

// three is three members and two commands that interfere. Each may be recovered under the given number of ballots.
func three(first, second uint8) *model {
	return &model{members: 3, f: 1, e: 1, commands: 2, highest: [names]uint8{first, second}, judgeFuture: true}
}

func five() *model {
	return &model{members: 5, f: 2, e: 2, commands: 3, highest: [names]uint8{2, 2, 2}, crashes: 2, judgeFuture: true}
}

// walk takes random steps from the initial state until there are none, or an error is found. It returns the error,
// and the steps to it. Each walk prefers other steps, commands and members.
func (m *model) walk(random *rand.Rand, steps int) (wrong string, story []string) {
	var now, chosen cluster
	liking := m.likes(random)
	for range steps {
		var best step
		top := 0.0
		m.each(&now, func(t step, n *cluster) {
			draw := random.Float64() * liking.kinds[t.kind] * liking.commands[t.c] * liking.members[t.m]
			if draw > top {
				top, best, chosen = draw, t, *n
			}
		})
		if top == 0 {
			break
		}
		now = chosen
		story = append(story, best.String())
		if wrong = m.wrong(&now); wrong != "" {
			return wrong, story
		}
	}
	return m.judge(&now), story
}

// likes are the preferences of a walk.
type likes struct {
	kinds    [kinds]float64
	commands [names]float64
	members  [crowd]float64
}

func (m *model) likes(random *rand.Rand) (l likes) {
	draw := func() float64 { return math.Exp(4 * (random.Float64() - 0.5)) }
	for i := range l.kinds {
		l.kinds[i] = draw()
	}
	for i := range l.commands {
		l.commands[i] = draw()
	}
	for i := range l.members {
		l.members[i] = draw()
	}
	l.kinds[opens] /= 2
	l.kinds[crashes] /= 4
	l.kinds[learns] /= 4
	return l
}

// walks takes many random walks.
func (m *model) walks(count int) (wrong string, story []string, walked int) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range count {
		if wrong, story = m.walk(random, 10+n%60); wrong != "" {
			return wrong, story, n + 1
		}
	}
	return "", nil, count
}

func (m *model) runWalks(t *testing.T, count int, want string) {
	t.Helper()
	wrong, story, walked := m.walks(count)
	t.Logf("%d walks: %s", walked, wrong)
	if want == "" && wrong != "" || want != "" && !strings.HasPrefix(wrong, want) {
		t.Errorf("want %q, found %q\n%s", want, wrong, strings.Join(story, "\n"))
	} else if wrong != "" {
		t.Log(strings.Join(story, "\n"))
	}
}

// nearest searches the states that are nearest to the initial one, and fails at an error.
func (m *model) nearest(t *testing.T, limit int) {
	t.Helper()
	r := explore.Search(m.space(), limit, nil)
	t.Logf("%d states, %d steps, all: %v", r.States, r.Depth, r.Whole)
	if r.Wrong != "" {
		t.Errorf("found %q\n%s", r.Wrong, strings.Join(r.Trace, "\n"))
	}
}

func TestRulesHold(t *testing.T) {
	t.Run("no recovery, all states", func(t *testing.T) { explore.Run(t, three(0, 0).space(), 100_000, "") })
	for _, m := range []*model{three(1, 0), three(1, 1), three(2, 0)} {
		t.Run(fmt.Sprint(m.highest),
			func(t *testing.T) { m.nearest(t, testsize.Pick(testsize.Deep, 40_000, 40_000, 500_000)) })
	}
	crashing := three(2, 2)
	crashing.crashes = 2
	four := five()
	four.members, four.f, four.e = 4, 1, 1
	apart := five()
	apart.apart = 1 << 2
	for name, m := range map[string]*model{"three": crashing, "four": four, "five": five(),
		"one interferes with none": apart} {
		t.Run(name, func(t *testing.T) { m.runWalks(t, testsize.Pick(testsize.Deep, 1000, 1000, 100_000), "") })
	}
}
