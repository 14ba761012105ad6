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
func (v *View) on() bool { return v.On || v.Settings.Mutant == MutantOpenOff }

// off reports whether a configuration turns lanes off that the active one has.
func (v *View) off(next *protocol.Config) bool {
	return v.On && next.Profile.Version > 0 && !On.In(next.Profile.Values)
}

// Idle reports whether there is nothing to do for lanes: they are off, and all are closed and given up.
func (l *Lanes) Idle(v *View) bool {
	return l == nil || !v.on() && len(l.held)+len(l.opened)+len(l.end.marks)+len(l.confirmed.marks) == 0 &&
		!l.end.open && !l.confirmed.open && l.lead.fence.change == nil
}
