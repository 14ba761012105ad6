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
