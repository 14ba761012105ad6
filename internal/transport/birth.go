package transport

import (
	"fmt"
	"io"
	"strings"
)

// Birth is the state with which a cluster began, before its first entry. Its founding members must have begun with the
// same one: from the same log, another one follows from another state.
type Birth struct {
	// State names the state; "": the cluster began with an empty one. It is told like a setting, except for members that
	// do not know it yet.
	State string
	// Unknown: this member joins a cluster, and was not told yet.
	Unknown bool
}

// birthSetting is the name of what is told; it is none of Options.Settings. An empty birth is not told, as earlier
// versions do not know of any.
const birthSetting = "birth"

// flagJoins in a hello or a reply says that its sender does not know the birth. Earlier versions ignore it.
const flagJoins = 1

func flags(joins bool, k tells) (f byte) {
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

// birth is what this member knows now.
func (t *Transport) birth() Birth {
	if t.opt.Birth == nil {
		return Birth{}
	}
	return t.opt.Birth()
}

// born notes the birth that another member told, before anything is read from the link.
func (t *Transport) born(id uint64, state string) error {
	if t.opt.Born == nil {
		return nil
	}
	return t.opt.Born(id, state)
}

// told is the text of the settings with the birth.
func (t *Transport) told(b Birth) string {
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

// sameLog reports whether settings are equal, and what two members say of the birth does not differ.
func (t *Transport) sameLog(there string, joins bool) bool {
	own := t.birth()
	there, state := birthOf(there)
	b := Birth{State: state, Unknown: joins}
	if t.opt.Agrees == nil {
		return there == t.settings && b == own
	}
	return there == t.settings && t.opt.Agrees(b)
}

// learnFrom reads from a reply, which a member that joins got, with which state the cluster began. ok is false if that
// member joins too.
func (t *Transport) learnFrom(h *hello, r *reply, more io.Reader) (state string, ok bool, err error) {
	if !h.joins || r.joins {
		return "", false, nil
	}
	if r.settings == h.settings {
		return "", true, nil
	}
	text, err := readSettings(more, r.settings)
	if err != nil {
		return "", false, fmt.Errorf("half an answer to the handshake: %w", err)
	}
	if !t.sameLog(text, r.joins) {
		return "", false, &HandshakeError{Peer: h.to, Reason: ReasonSettings, Detail: settingsDiffer(text, h.text)}
	}
	_, state = birthOf(text)
	return state, true, nil
}
