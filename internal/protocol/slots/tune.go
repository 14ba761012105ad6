package slots

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// Tuning are the settings with which a core was started, from which the settings under each profile are derived.
// No rule of these protocols depends on two members having the same settings, except for those that never change
// while the protocol runs: a profile is used as soon as the log has it.
type Tuning struct {
	name    string
	own     setting.Table
	started protocol.Settings
	// keeps is a setting that no profile of a log changes; nil: there is none.
	keeps setting.Any
	// profile is the one that the core uses.
	profile protocol.Profile
}

// NewTuning returns the tuning of a protocol with a table of its own, and the complete settings. mutants are those that
// the protocol has. The error is a [*protocol.SettingsError].
func NewTuning(
	name string, own setting.Table, cfg protocol.Settings, mutants []protocol.MutantInfo,
) (Tuning, protocol.Settings, error) {
	cfg, err := cfg.WithDefaults()
	if err == nil {
		err = cfg.Complete(own)
	}
	if err == nil {
		err = allowed(name, &cfg, mutants)
	}
	return Tuning{name: name, own: own, started: cfg}, cfg, err
}

// Follow changes the settings of a core to those under a profile that became active. It reports whether it is another
// profile than before. After an error, a [*protocol.ProfileError], nothing has changed, and the core must stop.
func (t *Tuning) Follow(cfg *protocol.Settings, p *protocol.Profile) (changed bool, err error) {
	if p.Equal(&t.profile) {
		return false, nil
	}
	next, err := t.under(p)
	if err != nil {
		return false, err
	}
	t.profile = protocol.Profile{Version: p.Version, Core: p.Core, Values: p.Values}
	*cfg = next
	return true, nil
}

// Keep makes a setting of the protocol one that no profile changes: a core with another value has another log.
func (t *Tuning) Keep(s setting.Any) { t.keeps = s }

// Tune is Follow for a core that runs. If the core must stop, ok is false, and its effects say why.
func (t *Tuning) Tune(cfg *protocol.Settings, c *protocol.Config, out *protocol.Effects) (changed, ok bool) {
	changed, err := t.Follow(cfg, &c.Profile)
	if err != nil {
		out.Unusable = err
	}
	return changed, err == nil
}

// under returns the settings under a profile. The error is a [*protocol.ProfileError].
func (t *Tuning) under(p *protocol.Profile) (protocol.Settings, error) {
	next, err := common.Tuned(t.started, t.own, p)
	if err != nil {
		return next, err
	}
	if err = allowed(t.name, &next, nil); err == nil {
		err = t.kept(&next)
	}
	if err != nil {
		return next, &protocol.ProfileError{Version: p.Version, Err: err}
	}
	return next, nil
}

// kept returns the error if the setting that no profile changes would change.
func (t *Tuning) kept(next *protocol.Settings) error {
	if t.keeps == nil {
		return nil
	}
	name := t.keeps.About().Name
	have, want := t.own.Text(name, t.started.Own), t.own.Text(name, next.Own)
	if have == want {
		return nil
	}
	return &protocol.SettingsError{Detail: fmt.Sprintf("%s %s, but this member's log has %s, which no profile changes",
		name, want, have)}
}

// Refuses returns the reason why a core with some settings does not propose a profile; ReasonNone if it does. Settings
// that are sealed, and those that never change while a member runs, must be the same.
func (t *Tuning) Refuses(cfg *protocol.Settings, have, next *protocol.Profile) protocol.Reason {
	if next.Equal(have) {
		return protocol.ReasonNone
	}
	to, err := t.under(next)
	if err != nil {
		return protocol.ReasonSettings
	}
	if !same(t.own, cfg.Own, to.Own) || have.Version > 0 && !same(common.Settings, have.Values, next.Values) {
		return protocol.ReasonSettings
	}
	return protocol.ReasonNone
}

// same reports whether the settings of a table that cannot change while a protocol runs are equal.
func same(t setting.Table, a, b setting.Values) bool {
	for _, r := range t.Rows {
		switch about := r.About(); about.Change {
		case setting.Sealed, setting.Never, setting.Restart:
			if t.Text(about.Name, a) != t.Text(about.Name, b) {
				return false
			}
		}
	}
	return true
}

// Check verifies that a core uses the profile of its configuration.
func (t *Tuning) Check(active *protocol.Profile) error {
	if !active.Equal(&t.profile) {
		return fmt.Errorf("the settings are those of profile %d, but %d is active", t.profile.Version, active.Version)
	}
	return nil
}

// LastProfile is the profile of the last configuration on a disk. Entries that cannot be read are ignored.
func LastProfile(rec *protocol.Recovered) protocol.Profile {
	for i := len(rec.Entries) - 1; i >= 0; i-- {
		if e := &rec.Entries[i]; e.Kind == protocol.EntryConfig {
			if c, err := protocol.DecodeConfig(e.Payload); err == nil {
				return c.Profile
			}
		}
	}
	return rec.Base.Config.Profile
}
