package conformance

import (
	"fmt"
	"testing"

	"github.com/braidlog/braid/protocol"
)

// caught stops a run where a test would stop.
type caught struct{ what string }

// hunter is a test that reports instead of failing.
type hunter struct{ testing.TB }

func (h hunter) Helper()                        {}
func (h hunter) Logf(string, ...any)            {}
func (h hunter) Fatal(args ...any)              { panic(caught{fmt.Sprint(args...)}) }
func (h hunter) Fatalf(format string, a ...any) { panic(caught{fmt.Sprintf(format, a...)}) }

// Hunt runs the cluster under faults that a seed describes and returns the violation, or the core's panic; "" if
// there is none. It tests whether the suite finds a core that is broken on purpose. trace may be nil.
func Hunt(codec *protocol.Codec, start Factory, seed uint64, trace func(line string)) (what string) {
	return HuntWith(codec, start, Options{}, seed, trace)
}

// HuntWith is Hunt with options.
func HuntWith(codec *protocol.Codec, start Factory, o Options, seed uint64, trace func(line string)) (what string) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case caught:
			what = p.what
		default:
			what = fmt.Sprintf("panic: %v", p)
		}
	}()
	runFaults(hunter{}, suite{codec, start, o}, seed, trace)
	return ""
}
