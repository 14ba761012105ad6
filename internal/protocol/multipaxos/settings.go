package multipaxos

import "github.com/braidlog/braid/protocol/setting"

// RelayGroups is the setting of relays. See relay.go.
var RelayGroups = &setting.Setting[int]{
	Name: "relays", Check: setting.Range(0, 64), Change: setting.Local, Detour: true,
	Help: "for many members: into how many groups a member that proposes puts the others, each with a member that passes on what it sends, 1 to 64 (0: none, it sends to all)",
	Draw: func(below func(int) int, own int) int { return below(own + 2) },
}

// Settings are those of multi-Paxos, and ISSSettings those of ISS.
var (
	Settings    = setting.Table{Rows: []setting.Any{RelayGroups}}
	ISSSettings = setting.Table{Rows: []setting.Any{RelayGroups}}
)

// twoRelays are the settings with which mutants of relays are found.
var twoRelays = RelayGroups.Set(setting.Values{}, 2)
