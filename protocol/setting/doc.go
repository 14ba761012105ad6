// Package setting declares each setting of a protocol once: name, type, default, range, help, whether members must
// agree on it, and how a change comes into effect.
//
// A protocol has a [Table] of [Setting]s. From it come the flag, the variable, the key in a file, the check, the text
// that members compare when they connect, the entry in a status and the row in the documentation. The rest of the
// program passes [Values] on: only the protocol's core reads them, by [Setting.In], and knows their meaning. So a new
// setting changes only its protocol and the protocol's tests.
//
// Values are in normal form: a setting with its default is omitted. So two Values are equal if they mean the same,
// and the zero Values has every default.
//
// How to read: setting.go (a declaration), text.go (the text of values), check.go (ranges), values.go (sets of
// values), table.go (the settings of a protocol), flag.go (flags), fields.go (structs with a field for each setting),
// json.go (flat JSON), errors.go.
//
// May import: the standard library only.
package setting
