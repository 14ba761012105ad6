package transport

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// versioned are the settings of a member whose state needs a version, and which knows another one.
func versioned(needed *atomic.Int32, known uint8) func(*Options, *testHandler) {
	return func(o *Options, _ *testHandler) {
		o.Settings = func() Told {
			return Told{All: []Setting{{"color", "blue"}}, StateNeeded: uint8(needed.Load()), StateKnown: known}
		}
	}
}

// There is no link with a member that cannot follow the state, whichever side dials, and both sides report that. If one
// member only has not applied as much yet, there is a link.
func TestMembersKnowTheVersionOfTheState(t *testing.T) {
	for name, c := range map[string]struct {
		dialerNeeds, dialerKnows, otherNeeds, otherKnows uint8
		dialer, other                                    string // what they say; "": there is a link
	}{
		"neither needs one":     {0, 0, 0, 1, "", ""},
		"one has it":            {1, 1, 0, 1, "", ""},
		"the other one has it":  {0, 1, 1, 1, "", ""},
		"both":                  {1, 1, 1, 3, "", ""},
		"the other is behind":   {1, 1, 0, 0, "version 1 here, which is not known there", "version 1 there"},
		"the dialer is behind":  {0, 0, 1, 1, "version 1 there, which is not known here", "version 1 here"},
		"a later one is needed": {2, 2, 1, 1, "version 2 here, which is not known there", "version 2 there"},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			var dialer, other atomic.Int32
			dialer.Store(int32(c.dialerNeeds))
			other.Store(int32(c.otherNeeds))
			a := start(t, 1, calm, "", versioned(&dialer, c.dialerKnows))
			b := start(t, 2, calm, "", versioned(&other, c.otherKnows))
			b.SetPeers([]Peer{{ID: 1}})
			a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
			if c.dialer == "" {
				a.expectUp(t, 2)
				return
			}
			a.expectRefused(t, 2, ReasonSettings, true)
			if text := a.Stats().Peers[0].LastError; !strings.Contains(text, c.dialer) {
				t.Errorf("the dialer says %q, not %q", text, c.dialer)
			}
			eventually(t, "the other side says it", func() bool { return strings.Contains(b.logs.String(), c.other) })
		})
	}
}

// A version that compares the text alone, and one whose log is behind a seal, are refused too.
func TestEarlierVersionsDoNotFollowTheState(t *testing.T) {
	own := told{Told: Told{Sealed: true, StateNeeded: 1, StateKnown: 1}}
	tr := &Transport{opt: Options{Settings: func() Told { return own.Told }}}
	now, err := tr.told()
	if err != nil {
		t.Fatal(err)
	}
	if names := namesOf(parseSettings(now.text), parseSettings("sealed=true\n")); !strings.Contains(names,
		`state is "1" there, not known here`) {
		t.Errorf("an earlier version compares it as a setting: %s", names)
	}
	if d := tr.differ(&now, "sealed=true\n", false, false, features{tunes: true, seals: true}); d == "" {
		t.Error("a member of an earlier version is accepted")
	}
	h, r := &hello{own: &now}, &reply{features: features{seals: true}}
	conn, other := net.Pipe()
	defer conn.Close()
	defer other.Close()
	if err := tr.checkReply(conn, h, r); err == nil {
		t.Error("a member of an earlier version that accepts this one is accepted")
	}
	for f := uint8(0); f <= maxState; f++ {
		k := originFields{lineages: true, founders: true, formats: f%2 == 0}
		b := flags(true, true, ownFeatures(f), k)
		if got := featuresOf(b); got != ownFeatures(f) || originFieldsOf(b) != k {
			t.Errorf("%+v became %+v", ownFeatures(f), got)
		}
	}
	if _, needed := stateOf("state=x\n"); needed <= maxState {
		t.Errorf("an unknown version is version %d", needed)
	}
}
