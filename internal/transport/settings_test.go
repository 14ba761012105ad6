package transport

import (
	"strings"
	"testing"
)

// TestBothSidesNameTheSettingThatDiffers: an operator sees on either member which setting it
// is, and both values.
func TestBothSidesNameTheSettingThatDiffers(t *testing.T) {
	noLeaks(t)
	a := start(t, 1, calm, "", nil)
	b := start(t, 2, calm, "", func(o *Options, _ *testHandler) {
		o.Settings = []Setting{{"color", "blue"}, {"size", "8"}, {"taste", "sweet"}}
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
		if text, err := settingsText(all); err == nil {
			t.Errorf("%s: became %q", name, text)
		}
	}
	one, err := settingsText([]Setting{{"b", "2=3"}, {"a", ""}})
	if err != nil || one != "a=\nb=2=3\n" {
		t.Fatalf("got %q, %v", one, err)
	}
	other, _ := settingsText([]Setting{{"a", ""}, {"b", "2=3"}})
	if one != other || markOf(one) != markOf(other) || settingsDiffer(one, other) != "" {
		t.Errorf("the order counts: %q, %q", one, other)
	}
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
