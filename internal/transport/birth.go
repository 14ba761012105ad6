package transport

import (
	"fmt"
	"strings"
)

// Birth is the state with which a cluster began, before its first entry. Its founding members must have begun with the
// same one: from the same log, another one follows from another state.
type Birth struct {
	// State names the state; "": the cluster began with an empty one. It is sent like a setting, but not by members that
	// do not know it yet.
	State string
	// Unknown: this member joins a cluster, and did not receive it yet.
	Unknown bool
}

// birthSetting is the name under which the birth is sent; it is no setting. An empty birth is not sent,
// since earlier versions have none.
const birthSetting = "birth"

// flagJoins in a hello or a reply is set if its sender does not know the birth, and flagLearns if it does not know the
// profile: see Told.Unknown. Earlier versions ignore them.
const (
	flagJoins  = 1
	flagLearns = 8
)

func flags(joins, learns bool, v features, k originFields) byte {
	f := v.flags(k.formats)
	if joins {
		f |= flagJoins
	}
	if learns {
		f |= flagLearns
	}
	if k.lineages {
		f |= flagLineages
	}
	if k.founders {
		f |= flagFounders
	}
	return f
}

// birth returns what this member knows of the birth now.
func (t *Transport) birth() Birth {
	if t.opt.Birth == nil {
		return Birth{}
	}
	return t.opt.Birth()
}

// saveBirth records the birth that another member sent, before anything is read from the link.
func (t *Transport) saveBirth(id uint64, state string) error {
	if t.opt.Born == nil {
		return nil
	}
	return t.opt.Born(id, state)
}

// told is what this member tells of its settings, and of the birth, now.
type told struct {
	Told
	birth Birth
	text  string // of both
}

// told returns what this member tells now.
func (t *Transport) told() (w told, err error) {
	if t.opt.Settings != nil {
		w.Told = t.opt.Settings()
	}
	w.birth = t.birth()
	if w.text, err = w.Text(); err == nil && w.birth.State != "" {
		w.text += birthSetting + "=" + w.birth.State + "\n"
	}
	if err == nil && w.StateNeeded > 0 {
		w.text += fmt.Sprintf("%s=%d\n", stateSetting, w.StateNeeded)
	}
	return w, err
}

// birthOf separates the birth from the text of another member's settings.
func birthOf(text string) (settings, birth string) { return separate(text, birthSetting) }

// separate separates a line from the others of a text.
func separate(text, name string) (rest, value string) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return strings.Replace(text, line, "", 1), strings.TrimSuffix(value, "\n")
		}
	}
	return text, ""
}

// differ says in which settings, and in which birth, another member differs from this one, so that there may be no
// link; "": there may be one. text, joins, learns and v are what it told.
func (t *Transport) differ(own *told, text string, joins, learns bool, v features) string {
	text, state := birthOf(text)
	text, needed := stateOf(text)
	var parts []string
	if d := own.stateDiffers(needed, v.state); d != "" {
		parts = append(parts, d)
	}
	if d := own.Differ(text, learns, v.seals); d != "" {
		parts = append(parts, d)
	}
	b := Birth{State: state, Unknown: joins}
	agrees := b == own.birth
	if t.opt.Agrees != nil {
		agrees = t.opt.Agrees(b)
	}
	if !agrees {
		parts = append(parts, fmt.Sprintf("%s is %s there, %s here", birthSetting, nameOf(b), nameOf(own.birth)))
	}
	return strings.Join(parts, "; ")
}

func nameOf(b Birth) string {
	switch {
	case b.Unknown:
		return "not known"
	case b.State == "":
		return "empty"
	}
	return fmt.Sprintf("%q", b.State)
}
