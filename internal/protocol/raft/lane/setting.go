package lane

import "github.com/braidlog/braid/protocol/setting"

// On is the setting that gives members lanes.
var On = &setting.Setting[bool]{
	Name: "lanes", Agree: true, Untold: true, Change: setting.Fenced,
	Help: "members replicate blind commands themselves, each in a lane of its own, and the leader only confirms them",
}
