package transport

import "strings"

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

// flagJoins in a hello or a reply is set if its sender does not know the birth. Earlier versions ignore it.
const flagJoins = 1

func flags(joins bool, k originFields) (f byte) {
	if joins {
		f |= flagJoins
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

// settingsWith is the text of the settings with the birth.
func (t *Transport) settingsWith(b Birth) string {
	if b.State == "" {
		return t.settings
	}
	return t.settings + birthSetting + "=" + b.State + "\n"
}

// birthOf separates the birth from the text of another member's settings.
func birthOf(text string) (settings, birth string) {
	for line := range strings.Lines(text) {
		if state, ok := strings.CutPrefix(line, birthSetting+"="); ok {
			return strings.Replace(text, line, "", 1), strings.TrimSuffix(state, "\n")
		}
	}
	return text, ""
}

// sameLog reports whether settings are equal, and the births that two members know do not differ.
func (t *Transport) sameLog(there string, joins bool) bool {
	own := t.birth()
	there, state := birthOf(there)
	b := Birth{State: state, Unknown: joins}
	if t.opt.Agrees == nil {
		return there == t.settings && b == own
	}
	return there == t.settings && t.opt.Agrees(b)
}
