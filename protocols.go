package braid

import (
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol/setting"
)

// Settings are those of a protocol that are not defaults, from a setting's name to its text; the zero value is every
// default. They are immutable and comparable, and encode themselves as JSON. [ParseSettings] makes them, or the structs
// that are named after protocols: [MultiPaxos], [ISS].
//
//	All() iter.Seq2[string, string]             // by name
//	Get(name string) (text string, ok bool)     // ok is false if it has its default
//	IsZero() bool                               // every setting has its default
//	Over(base Settings) Settings                // these settings, and those of base that they do not have
//	Without(name string) Settings               // the others
//	Flat(object []byte) ([]byte, error)         // adds them to a JSON object, as members of it
type Settings = setting.Values

// SettingError indicates which setting does not exist, or does not allow its value. Nothing happened. Do not retry.
//
//	Name, Text string // the setting, and the value that it was to have
//	Detail     string // what is wrong
type SettingError = setting.Error

// ParseSettings reads settings of the form NAME=VALUE, as "relays=3". docs/using/settings.md lists them. Open
// checks them. The error is a [*SettingError].
func ParseSettings(settings ...string) (Settings, error) { return setting.Parse(settings...) }

// MultiPaxos are the settings of protocol "multi-paxos" (docs/internals/multi-paxos.md).
type MultiPaxos struct {
	// Quorums says who elects and who decides: "majority", the default; "ELECT/DECIDE" as in "4/2"; "grid:ROWS" as in
	// "grid:2"; "zones:COUNT/LOST/DOWN" as in "zones:3/0/1". It must be the same on all members, and never changes. The
	// resulting tolerance is logged when a member starts.
	Quorums string `setting:"quorums"`
	// Relays is for clusters of many members: into how many groups a member that proposes puts the others, 0…64. It
	// sends to one member of each group, which passes it on. 0: it sends to all. Members may differ in it.
	Relays int `setting:"relays"`
}

// ISS are the settings of protocol "iss" (docs/internals/iss.md).
type ISS struct {
	Quorums string `setting:"quorums"` // as in MultiPaxos
	Relays  int    `setting:"relays"`  // as in MultiPaxos
	// Epochs says how the log is cut into epochs, and who leads in them. It must be the same on all members, and never
	// changes: a directory that was created with other epochs is not opened.
	Epochs EpochSettings `setting:"epochs"`
}

// Settings are the values for Options.Settings. The error is a [*SettingError].
func (p MultiPaxos) Settings() (Settings, error) { return settingsOf("multi-paxos", p) }

// Settings are the values for Options.Settings. The error is a [*SettingError].
func (p ISS) Settings() (Settings, error) { return settingsOf("iss", p) }

func settingsOf(protocol string, options any) (Settings, error) {
	return registry.Find(protocol).Core.Settings.Of(options)
}
