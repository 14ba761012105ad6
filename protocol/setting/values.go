package setting

import (
	"cmp"
	"fmt"
	"iter"
	"strings"
)

// Values map a setting's name to its text. The zero Values has every default. Values are immutable, comparable and
// safe for concurrent use.
type Values struct {
	text string // for each setting a line NAME=TEXT, ascending
}

// Parse parses NAME=TEXT each. Neither names nor texts are validated: see [Table.Complete]. The error is an [*Error].
func Parse(settings ...string) (v Values, err error) {
	for _, s := range settings {
		name, text, ok := strings.Cut(s, "=")
		switch {
		case !ok || name == "":
			return Values{}, &Error{s, "", "not of the form NAME=VALUE"}
		case strings.ContainsRune(s, '\n'):
			return Values{}, &Error{name, text, "has a line break"}
		}
		v = v.with(name, text)
	}
	return v, nil
}

// MustParse is [Parse] for constants in a program. It panics on an error.
func MustParse(settings ...string) Values {
	v, err := Parse(settings...)
	if err != nil {
		panic(err)
	}
	return v
}

// All are the settings that differ from their defaults, by name.
func (v Values) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(v.text) {
			name, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			if !yield(name, text) {
				return
			}
		}
	}
}

// Get returns a setting's text; ok is false if it has its default.
func (v Values) Get(name string) (text string, ok bool) {
	for n, t := range v.All() {
		if n == name {
			return t, true
		}
	}
	return "", false
}

// Texts are the values in the form for [Parse]: NAME=TEXT each.
func (v Values) Texts() []string {
	return strings.FieldsFunc(v.text, func(r rune) bool { return r == '\n' })
}

// IsZero reports whether every setting has its default.
func (v Values) IsZero() bool { return v == Values{} }

// Without returns the values with the default of a setting.
func (v Values) Without(name string) Values {
	var out strings.Builder
	for n, t := range v.All() {
		if n != name {
			line(&out, n, t)
		}
	}
	return Values{out.String()}
}

// Over returns these values, and those of base for settings that have their default here.
func (v Values) Over(base Values) Values {
	for n, t := range v.All() {
		base = base.with(n, t)
	}
	return base
}

// with returns the values with a text of a setting.
func (v Values) with(name, text string) Values {
	var out strings.Builder
	done := false
	for n, t := range v.All() {
		if !done && n >= name {
			line(&out, name, text)
			done = true
		}
		if n != name {
			line(&out, n, t)
		}
	}
	if !done {
		line(&out, name, text)
	}
	return Values{out.String()}
}

// Differences describes how values differ from those before: NAME=TEXT (was TEXT) for each, with the word default if a
// setting has no text.
func Differences(before, v Values) string {
	var out []string
	for n, t := range v.All() {
		if was, had := before.Get(n); was != t || !had {
			out = append(out, fmt.Sprintf("%s=%s (was %s)", n, t, cmp.Or(was, "default")))
		}
	}
	for n, was := range before.All() {
		if _, has := v.Get(n); !has {
			out = append(out, fmt.Sprintf("%s=default (was %s)", n, was))
		}
	}
	return strings.Join(out, ", ")
}

func line(out *strings.Builder, name, text string) {
	out.WriteString(name)
	out.WriteByte('=')
	out.WriteString(text)
	out.WriteByte('\n')
}

// String returns the values as text: NAME=TEXT each, with spaces between.
func (v Values) String() string {
	return strings.ReplaceAll(strings.TrimSuffix(v.text, "\n"), "\n", " ")
}

// MarshalBinary writes a line NAME=TEXT for each setting. Package gob uses it: a program may send a status.
func (v Values) MarshalBinary() ([]byte, error) { return []byte(v.text), nil }

// UnmarshalBinary reads the output of MarshalBinary. The error is an [*Error].
func (v *Values) UnmarshalBinary(data []byte) error {
	read, err := Parse(Values{string(data)}.Texts()...)
	if err == nil {
		*v = read
	}
	return err
}
