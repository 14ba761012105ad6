package relay

import "github.com/braidlog/braid/protocol/setting"

// Groups is the setting of relays, which multi-Paxos and ISS have.
var Groups = &setting.Setting[int]{
	Name: "relays", Check: setting.Range(0, 64), Change: setting.Local, Detour: true,
	Help: "for many members: number of groups into which a proposing member divides the others, " +
		"each with a member that relays its messages, 1 to 64 (0: no groups, it sends to all)",
	Draw: func(below func(int) int, own int) int { return below(own + 2) },
}
