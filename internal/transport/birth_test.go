package transport

import (
	"strings"
	"sync"
	"testing"
)

// fixedBirth is the birth of a member in these tests, which learns one at most.
type fixedBirth struct {
	mu sync.Mutex
	Birth
}

func (b *fixedBirth) options(o *Options, _ *testHandler) {
	o.Birth = func() Birth {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.Birth
	}
	o.Agrees = func(other Birth) bool {
		own := o.Birth()
		return own.Unknown || other.Unknown || own == other
	}
	o.Born = func(_ uint64, state string) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.Birth = Birth{State: state}
		return nil
	}
}

// Members that began with different states are not linked, and both report the two states. One that joins is linked,
// and knows with which state the cluster began before it receives anything, whichever side dials.
func TestMembersBeganWithOneState(t *testing.T) {
	joins := Birth{Unknown: true}
	for name, c := range map[string]struct{ dialer, other, then Birth }{
		"both empty":                {Birth{}, Birth{}, Birth{}},
		"both the same":             {Birth{State: "x"}, Birth{State: "x"}, Birth{State: "x"}},
		"the dialer joins":          {joins, Birth{State: "x"}, Birth{State: "x"}},
		"the dialer joins empty":    {joins, Birth{}, Birth{}},
		"the other one joins":       {Birth{State: "x"}, joins, Birth{State: "x"}},
		"the other one joins empty": {Birth{}, joins, Birth{}},
		"both join":                 {joins, joins, joins},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			dialer, other := &fixedBirth{Birth: c.dialer}, &fixedBirth{Birth: c.other}
			a := start(t, 1, calm, "", dialer.options)
			b := start(t, 2, calm, "", other.options)
			b.SetPeers([]Peer{{ID: 1}})
			a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
			a.expectUp(t, 2)
			eventually(t, "both know it", func() bool {
				return a.opt.Birth() == c.then && b.opt.Birth() == c.then
			})
		})
	}
	for _, c := range []struct{ dialer, other, says string }{
		{"x", "", `birth is empty there, "x" here`}, {"", "x", `birth is "x" there, empty here`},
		{"x", "y", `birth is "y" there, "x" here`},
	} {
		t.Run("refused: "+c.says, func(t *testing.T) {
			noLeaks(t)
			dialer, other := &fixedBirth{Birth: Birth{State: c.dialer}}, &fixedBirth{Birth: Birth{State: c.other}}
			a := start(t, 1, calm, "", dialer.options)
			b := start(t, 2, calm, "", other.options)
			b.SetPeers([]Peer{{ID: 1}})
			a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
			a.expectRefused(t, 2, ReasonSettings, true)
			if text := a.Stats().Peers[0].LastError; !strings.Contains(text, c.says) {
				t.Errorf("the refused side says %q", text)
			}
		})
	}
}

// A member that joins detects differing settings as any other does.
func TestAMemberThatJoinsHasTheSettings(t *testing.T) {
	noLeaks(t)
	a := start(t, 1, calm, "", (&fixedBirth{Birth: Birth{Unknown: true}}).options)
	b := start(t, 2, calm, "", func(o *Options, h *testHandler) {
		(&fixedBirth{Birth: Birth{State: "x"}}).options(o, h)
		o.Settings = telling([]Setting{{"color", "blue"}, {"size", "8"}}...)
	})
	b.SetPeers([]Peer{{ID: 1}})
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
	a.expectRefused(t, 2, ReasonSettings, true)
}
