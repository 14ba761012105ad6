package lane

import (
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// On is the setting that gives members lanes.
var On = &setting.Setting[bool]{
	Name: "lanes", Agree: true, Untold: true, Change: setting.Fenced,
	Help: "members replicate blind commands themselves, each in a lane of its own, and the leader only confirms them",
}

// on reports whether the active profile has lanes. If it has not, no lane opens and no generation begins.
func (v *View) on() bool { return On.In(v.Settings.Own) || v.Settings.Mutant == MutantOpenOff }

// off reports whether a configuration turns lanes off that the active one has.
func (v *View) off(next *protocol.Config) bool {
	return On.In(v.Settings.Own) && next.Profile.Version > 0 && !On.In(next.Profile.Values)
}

// Possible reports whether lanes can be as a configuration says. They are not turned on in a log that has ever been
// merged from several instances, or is about to be: what members accepted would not come before commands of their later
// incarnations in another instance.
func (l *Lanes) Possible(v *View, next *protocol.Config) bool {
	on := next.Profile.Version > 0 && On.In(next.Profile.Values)
	return !on || On.In(v.Settings.Own) || l != nil && v.Log.Shaped == 0
}
