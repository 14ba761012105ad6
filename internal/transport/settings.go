package transport

import (
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
)

// Setting is a setting that must be equal on all members. Both sides of a handshake compare
// theirs. If one differs, both can name it with both values.
type Setting struct{ Name, Value string }

// maxSettingsBytes bounds the text of all settings, as it is sent to a peer.
const maxSettingsBytes = 4 << 10

// settingsText writes settings as lines, in the order of their names: equal settings are
// equal text.
func settingsText(all []Setting) (string, error) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Setting) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	for i, s := range all {
		switch {
		case s.Name == "" || strings.ContainsAny(s.Name, "=\n") || s.Name == birthSetting || strings.Contains(s.Value, "\n"):
			return "", fmt.Errorf("transport: setting %q=%q cannot be told", s.Name, s.Value)
		case i > 0 && all[i-1].Name == s.Name:
			return "", fmt.Errorf("transport: setting %q is given twice", s.Name)
		}
		fmt.Fprintf(&b, "%s=%s\n", s.Name, s.Value)
	}
	if b.Len() > maxSettingsBytes {
		return "", &SizeError{What: "text of the settings", Size: b.Len(), Limit: maxSettingsBytes}
	}
	return b.String(), nil
}

// parseSettings reads what settingsText wrote, and ignores anything else.
func parseSettings(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			all[name] = value
		}
	}
	return all
}

// settingsDiffer names each setting that two members have differently, with both values.
func settingsDiffer(there, here string) string {
	a, b := parseSettings(there), parseSettings(here)
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	value := func(all map[string]string, name string) string {
		if v, ok := all[name]; ok {
			return fmt.Sprintf("%q", v)
		}
		if name == birthSetting {
			return "empty"
		}
		return "not known"
	}
	var parts []string
	for _, name := range names {
		if x, y := value(a, name), value(b, name); x != y {
			parts = append(parts, fmt.Sprintf("%s is %s there, %s here", name, x, y))
		}
	}
	return strings.Join(parts, "; ")
}

// mark identifies the settings' text in a hello and in a reply: its length and its checksum.
type mark uint64

func markOf(text string) mark {
	return mark(len(text))<<32 | mark(crc32.Checksum([]byte(text), castagnoli))
}

// readSettings reads the text that a mark announces.
func readSettings(r io.Reader, m mark) (string, error) {
	if n := uint64(m >> 32); n > maxSettingsBytes {
		return "", &FrameError{fmt.Sprintf("settings of %d bytes, the limit is %d", n, maxSettingsBytes)}
	}
	b := make([]byte, m>>32)
	if _, err := io.ReadFull(r, b); err != nil {
		return "", err
	}
	if text := string(b); markOf(text) == m {
		return text, nil
	}
	return "", &FrameError{"settings with a wrong checksum"}
}
