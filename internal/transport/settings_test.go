package transport

import (
	"strings"
	"sync/atomic"
	"testing"
)

// TestBothSidesNameTheSettingThatDiffers: an operator sees on either member which setting it
// is, and both values.
func TestBothSidesNameTheSettingThatDiffers(t *testing.T) {
	noLeaks(t)
	a := start(t, 1, calm, "", nil)
	b := start(t, 2, calm, "", func(o *Options, _ *testHandler) {
		o.Settings = telling([]Setting{{"color", "blue"}, {"size", "8"}, {"taste", "sweet"}}...)
	})
	b.SetPeers([]Peer{{ID: 1}})
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
	a.expectRefused(t, 2, ReasonSettings, true)
	for _, line := range []string{`size is "8" there, "7" here`, `taste is "sweet" there, not known here`} {
		if text := a.Stats().Peers[0].LastError; !strings.Contains(text, line) || strings.Contains(text, "color") {
			t.Errorf("the refused side says %q, not %q", text, line)
		}
	}
	eventually(t, "the refusing side names it", func() bool {
		log := strings.ReplaceAll(b.logs.String(), `\"`, `"`)
		return strings.Contains(log, `size is "7" there, "8" here`) &&
			strings.Contains(log, `taste is not known there, "sweet" here`)
	})
}

func TestInvalidSettings(t *testing.T) {
	for name, all := range map[string][]Setting{
		"too long":      {{"a", strings.Repeat("x", maxSettingsBytes)}},
		"two lines":     {{"a", "b\nc"}},
		"name with =":   {{"a=b", "c"}},
		"no name":       {{"", "c"}},
		"given twice":   {{"a", "b"}, {"c", "d"}, {"a", "b"}},
		"name of lines": {{"a\nb", "c"}},
	} {
		if text, err := (&Told{All: all}).Text(); err == nil {
			t.Errorf("%s: became %q", name, text)
		}
	}
	told := Told{All: []Setting{{"b", "2=3"}, {"a", ""}}}
	one, err := told.Text()
	if err != nil || one != "a=\nb=2=3\n" {
		t.Fatalf("got %q, %v", one, err)
	}
	other, _ := (&Told{All: []Setting{{"a", ""}, {"b", "2=3"}}}).Text()
	if one != other || markOf(one) != markOf(other) || told.Differ(other, false, true) != "" {
		t.Errorf("the order counts: %q, %q", one, other)
	}
}

// Members with different versions of the profile, and members that do not know it yet, compare only what no profile
// changes.
func TestSettingsOfAProfile(t *testing.T) {
	tunable := func(name string) bool { return name == "size" || name == "taste" }
	old := Told{All: []Setting{{"color", "blue"}, {"size", "7"}}, Tunable: tunable}
	tuned := Told{All: []Setting{{"color", "blue"}, {"size", "8"}, {"taste", "sweet"}}, Profile: 2, Tunable: tunable}
	joins := Told{All: []Setting{{"color", "blue"}, {"size", "9"}}, Unknown: true, Tunable: tunable}
	sealed := Told{All: []Setting{{"color", "green"}, {"shape", "round"}}, Profile: 3, Sealed: true}
	sealedOtherwise := Told{All: []Setting{{"color", "green"}, {"shape", "flat"}}, Profile: 3, Sealed: true}
	notSealed := Told{All: []Setting{{"color", "green"}, {"shape", "round"}}, Profile: 3}
	red := tuned
	red.All = []Setting{{"color", "red"}, {"size", "8"}, {"shape", "round"}}
	for _, c := range []struct {
		there, here Told
		want        string
	}{
		{old, old, ""}, {tuned, tuned, ""}, {old, tuned, ""}, {joins, old, ""}, {joins, tuned, ""},
		{Told{All: tuned.All}, old, `size is "8" there, "7" here; taste is "sweet" there, not known here`},
		{red, old, `color is "red" there, "blue" here; shape is "round" there, not known here`},
		{red, joins, `color is "red" there, "blue" here; shape is "round" there, not known here`},
		{red, tuned, `color is "red" there, "blue" here; shape is "round" there, not known here; taste is not known there, ` +
			`"sweet" here`},
		{sealed, sealed, ""}, {sealed, tuned, ""}, {tuned, sealed, ""}, {red, sealed, ""}, {sealed, old, ""},
		{sealed, joins, ""}, {joins, sealed, ""},
		{sealedOtherwise, sealed, `shape is "flat" there, "round" here`},
		{notSealed, sealed, `sealed is not known there, "true" here`},
	} {
		text, err := c.there.Text()
		if err != nil {
			t.Fatal(err)
		}
		if got := c.here.Differ(text, c.there.Unknown, true); got != c.want {
			t.Errorf("%v, %v: got %q, want %q", c.there.All, c.here.All, got, c.want)
		}
	}
}

// TestBehindASealEarlierVersionsAreRefused: they would apply what no member applies. Both sides refuse.
func TestBehindASealEarlierVersionsAreRefused(t *testing.T) {
	noLeaks(t)
	earlier := Told{All: []Setting{{"color", "blue"}}, Profile: 2}
	sealed := Told{All: []Setting{{"color", "blue"}}, Profile: 3, Sealed: true}
	text, err := earlier.Text()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sealed.Differ(text, false, false), `sealed is not known there, "true" here`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if text, err = sealed.Text(); err != nil {
		t.Fatal(err)
	}
	names := namesOf(parseSettings(text), parseSettings("color=blue\nprofile=2\n"))
	if !strings.Contains(names, `sealed is "true" there, not known here`) {
		t.Errorf("an earlier version compares it as a setting: %s", names)
	}

	a, b := start(t, 1, calm, "", nil), start(t, 2, calm, "", nil)
	connect(a, b)
	a.expectUp(t, 2)
	b.expectUp(t, 1)
	for _, m := range []*member{a, b} {
		if p := m.Stats().Peers[0]; !p.Tunes || !p.Seals {
			t.Errorf("a link does not show the version: %+v", p)
		}
	}
}

// TestAMemberThatLearnsTheProfile: a member with other settings has links if it does not know the profile, on either
// side. What it tells changes while it runs.
func TestAMemberThatLearnsTheProfile(t *testing.T) {
	noLeaks(t)
	tunable := func(name string) bool { return name == "size" }
	var learned atomic.Bool
	b := start(t, 2, calm, "", func(o *Options, _ *testHandler) {
		o.Settings = func() Told {
			return Told{All: []Setting{{"color", "blue"}, {"size", "9"}}, Unknown: !learned.Load(), Tunable: tunable}
		}
	})
	a := start(t, 1, calm, "", func(o *Options, _ *testHandler) {
		o.Settings = func() Told { return Told{All: testSettings, Tunable: tunable} }
	})
	connect(a, b)
	a.expectUp(t, 2)
	b.expectUp(t, 1)
	learned.Store(true)
	a.Drop(2)
	a.expectRefused(t, 2, ReasonSettings, true)
}

// TestSettingsFromTheWire: what a stranger announces is bounded and checked.
func TestSettingsFromTheWire(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		mark mark
	}{
		"too long":       {strings.Repeat("x", maxSettingsBytes+1), markOf(strings.Repeat("x", maxSettingsBytes+1))},
		"endless":        {"", mark(1<<32-1) << 32},
		"cut":            {testText[:3], markOf(testText)},
		"wrong checksum": {testText, markOf(testText) ^ 1},
	} {
		if text, err := readSettings(strings.NewReader(c.text), c.mark); err == nil {
			t.Errorf("%s: became %q", name, text)
		}
	}
	if text, err := readSettings(strings.NewReader(testText+"more"), markOf(testText)); err != nil || text != testText {
		t.Errorf("got %q, %v", text, err)
	}
}
