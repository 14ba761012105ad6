package quorum

import "github.com/braidlog/braid/protocol/setting"

// Setting is the setting of protocols whose quorums need not be majorities.
var Setting = &setting.Setting[System]{
	Name: "quorums", Text: &setting.Text[System]{Name: "string", Parse: Parse, Format: System.String},
	Agree: true, Untold: true, Change: setting.Sealed,
	Help: "numbers of voters that elect and that decide, as 4/2, grid:ROWS for voters in columns of at least ROWS, or " +
		"zones:COUNT/LOST/DOWN for voters in zones; what such a cluster tolerates is logged at its start",
}
