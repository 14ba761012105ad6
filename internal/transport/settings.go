package transport

import (
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strings"
)

// Setting is a setting that members compare when they connect. If one differs, both sides can name it with both
// values.
type Setting struct{ Name, Value string }

// Told are the settings that a member tells others.
type Told struct {
	All []Setting
	// Profile is the version of the profile that they are from; 0: it is the first one, or they are from flags. Members
	// with different ones compare only what no profile changes: the one that is behind learns the rest from the log.
	Profile uint64
	// Unknown: this member joins, and does not know the profile yet. It compares what no profile changes.
	Unknown bool
	// Sealed: the log had a seal, behind which everything may be different. A member of a version that knows no seals
	// is refused, because it is told a setting that it does not have.
	Sealed bool
	// Tunable reports whether a profile can change a setting; nil: none can be changed. A setting that is not known
	// here cannot.
	Tunable func(name string) bool
	// Format is what the member knows and writes.
	Format Format
	// StateNeeded is the version that a member must know to follow the program's state; 0: none. StateKnown is the
	// newest one that this member knows. They are at most 3.
	StateNeeded, StateKnown uint8
}

// profileSetting is the name under which the version of a profile is sent; it is no setting. The first one is not sent:
// it has the values of the flags of all members, which earlier versions compare.
const profileSetting = "profile"

// sealedSetting is the name under which Told.Sealed is sent; it is no setting.
const sealedSetting = "sealed"

// maxSettingsBytes bounds the text of all settings, as it is sent to a peer.
const maxSettingsBytes = 4 << 10

// Text writes settings as lines, in the order of their names: equal settings are equal text. The error says why they
// cannot be told.
func (t *Told) Text() (string, error) {
	all := slices.Clone(t.All)
	slices.SortFunc(all, func(a, b Setting) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	for i, s := range all {
		switch {
		case s.Name == "" || strings.ContainsAny(s.Name, "=\n") || strings.Contains(s.Value, "\n") || reserved(s.Name):
			return "", fmt.Errorf("transport: setting %q=%q cannot be told", s.Name, s.Value)
		case i > 0 && all[i-1].Name == s.Name:
			return "", fmt.Errorf("transport: setting %q is given twice", s.Name)
		}
		fmt.Fprintf(&b, "%s=%s\n", s.Name, s.Value)
	}
	if t.Profile > 0 {
		fmt.Fprintf(&b, "%s=%d\n", profileSetting, t.Profile)
	}
	if t.Sealed {
		fmt.Fprintf(&b, "%s=true\n", sealedSetting)
	}
	if b.Len() > maxSettingsBytes {
		return "", &SizeError{What: "text of the settings", Size: b.Len(), Limit: maxSettingsBytes}
	}
	return b.String(), nil
}

func reserved(name string) bool {
	return name == birthSetting || name == profileSetting || name == sealedSetting || name == stateSetting
}

// Differ names each setting that another member has differently, with both values; "": there may be a link. there is
// the text of the other member's settings, and unknown is its Unknown. seals: its version knows seals. Members with the
// same profile compare everything. Of others, one that is behind a seal and one that is not have nothing that must be
// equal: the latter learns everything from the log.
func (t *Told) Differ(there string, unknown, seals bool) string {
	own, err := t.Text()
	if err != nil {
		return err.Error()
	}
	a, b := parseSettings(there), parseSettings(own)
	if t.Unknown || unknown || a[profileSetting] != b[profileSetting] {
		if seals && (t.Sealed || a[sealedSetting] != "") {
			return ""
		}
		tunable := func(name, _ string) bool {
			return name == profileSetting || t.Tunable != nil && t.Tunable(name)
		}
		maps.DeleteFunc(a, tunable)
		maps.DeleteFunc(b, tunable)
	}
	return namesOf(a, b)
}

// parseSettings reads what Told.Text wrote, and ignores anything else.
func parseSettings(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			all[name] = value
		}
	}
	return all
}

// namesOf names each setting that two members have differently, with both values.
func namesOf(there, here map[string]string) string {
	var names []string
	for name := range there {
		names = append(names, name)
	}
	for name := range here {
		if _, both := there[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	value := func(all map[string]string, name string) string {
		if v, ok := all[name]; ok {
			return fmt.Sprintf("%q", v)
		}
		return "not known"
	}
	var parts []string
	for _, name := range names {
		if x, y := value(there, name), value(here, name); x != y {
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
