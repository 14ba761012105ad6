package slots

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// Settings returns the settings of a protocol that has only whole copies and majorities, with defaults for what is
// not set, under the profile that its disk has. The error is a [*protocol.SettingsError] or a [*protocol.ProfileError].
func Settings(
	name string, cfg protocol.Settings, mutants []protocol.MutantInfo, rec *protocol.Recovered,
) (protocol.Settings, error) {
	t, cfg, err := NewTuning(name, setting.Table{}, cfg, mutants)
	if err != nil {
		return cfg, err
	}
	p := LastProfile(rec)
	_, err = t.Follow(&cfg, &p)
	return cfg, err
}

// allowed checks complete settings. mutants are those that the protocol has; nil: all. The error is a
// [*protocol.SettingsError].
func allowed(name string, cfg *protocol.Settings, mutants []protocol.MutantInfo) error {
	known := func(i protocol.MutantInfo) bool { return i.Name == cfg.Mutant }
	switch {
	case cfg.Placement != protocol.PlacementCopy:
		return &protocol.SettingsError{Detail: name + " knows whole copies only"}
	case cfg.Mutant != "" && mutants != nil && !slices.ContainsFunc(mutants, known):
		return &protocol.SettingsError{Detail: fmt.Sprintf("unknown mutant %q", cfg.Mutant)}
	}
	return nil
}

// Fit checks that the voters of a configuration, in their zones, can form the quorums. A member that does not know the
// members yet has no voters. The error is a [*protocol.SettingsError].
func Fit(quorums quorum.System, c *protocol.Config) error {
	if len(c.Members) == 0 {
		return nil
	}
	if err := quorums.Fits(len(c.Voters()), quorum.ZonesOf(c)); err != nil {
		return &protocol.SettingsError{Detail: err.Error()}
	}
	return nil
}

// Decided is the decided state of a member: the log, the configuration that is active in the slot after it, and the
// state of bodies.
type Decided struct {
	Log    Log
	Config protocol.Config
	Bodies Bodies
}

// After returns the decided state of a member that starts from a snapshot.
func After(base *protocol.Base) Decided {
	return Decided{Log: logAfter(base.Index), Config: Numbered(base.Config), Bodies: BodiesAfter(base.Index)}
}

// Recover reads the decided state from the disk, and calls took with each entry. The error is a
// [*protocol.CorruptError].
func Recover(rec *protocol.Recovered, cacheBytes int, took func(*protocol.Entry)) (Decided, error) {
	d := After(&rec.Base)
	for i := range rec.Entries {
		e := &rec.Entries[i]
		c, err := d.Log.Load(e)
		if err != nil {
			return d, err
		}
		if c != nil {
			d.Config = *c
		}
		d.Bodies.Learned(e)
		d.Log.Lighten(e.Index, cacheBytes)
		took(e)
	}
	if last := d.Log.Last(); rec.State.Commit > last {
		return d, &protocol.CorruptError{What: "recovered log",
			Detail: fmt.Sprintf("ends at %d, but %d was decided", last, rec.State.Commit)}
	}
	return d, nil
}

// Chance is a generator of random numbers, seeded by ticks.
type Chance uint64

// Mix adds fresh randomness.
func (c *Chance) Mix(random uint64) { *c ^= Chance(random) }

// Draw returns the next number.
func (c *Chance) Draw() uint64 {
	*c += 0x9e3779b97f4a7c15
	z := uint64(*c)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
