// Package setting declares what can be set of a protocol, once: name, type, default, range, help, whether members must
// agree on it, and how a change comes into effect.
//
// A protocol has a [Table] of [Setting]s. From it come the flag, the variable, the key in a file, the check, the text
// that members compare when they connect, the entry in a status and the row in the documentation. The rest of the
// program carries [Values] without opening them: only the core of the protocol reads them, by [Setting.In], and only it
// knows what they mean. A new setting therefore touches its protocol and the protocol's tests.
//
// Values are in normal form: a setting that has its default is left out. So two Values are equal if they mean the same,
// and the zero Values is every default.
//
// How to read: setting.go (a declaration), text.go (how values are written), check.go (ranges), values.go (what is
// set), table.go (the settings of a protocol), flag.go (flags), fields.go (structs with a field for each setting),
// json.go (flat JSON), errors.go.
//
// May import: the standard library only.
package setting
