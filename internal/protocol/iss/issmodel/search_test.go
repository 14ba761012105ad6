package issmodel

import (
	"flag"
	"fmt"
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

const (
	quickLimit = 1_500_000
	deepLimit  = 60_000_000
)

// space is a model: the initial state, the next states, and the invariant.
type space[S comparable] interface {
	beginning() S
	// each calls yield for every next state, always in the same order.
	each(s *S, yield func(step, *S))
	// mirror is the state with members of the same role exchanged.
	mirror(s *S) S
	// judge describes an error in a state; "" if there is none.
	judge(s *S) string
}

// step describes the step between two states: a sentence, and its parameters. {m} is a member, {v} a value; {n}
// stands for any other number.
type step struct {
	text string
	args [4]uint8
}

func (t step) String() string {
	out, rest := "", t.text
	for _, arg := range t.args {
		before, after, found := strings.Cut(rest, "{")
		if !found {
			break
		}
		out += before
		switch after[0] {
		case 'm':
			out += fmt.Sprint(arg + 1)
		case 'v':
			out += valueName(arg)
		default:
			out += fmt.Sprint(arg)
		}
		rest = after[2:]
	}
	return out + rest
}

// searched adapts a model to package explore.
func searched[S comparable](m space[S]) explore.Space[S, step] {
	return explore.Space[S, step]{Beginning: m.beginning(), Each: m.each, Describe: step.String, Judge: m.judge,
		Mirror: m.mirror}
}

// run searches for an error whose description begins with want; "" expects none in all states.
func run[S comparable](t *testing.T, m space[S], limit int, want string) {
	t.Helper()
	explore.Run(t, searched(m), limit, want)
}
