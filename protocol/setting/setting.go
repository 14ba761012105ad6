package setting

// Change is the way in which another value of a setting comes into effect.
type Change string

// The ways in which a change comes into effect.
const (
	// Restart: when the member starts again.
	Restart Change = "restart"
	// Local: when the member applies it. Safety does not depend on the setting, and members may differ in it.
	Local Change = "local"
	// ByEntry: from the leader's next entry on. Every entry carries its own value.
	ByEntry Change = "by entry"
	// Fenced: at a fence in the log.
	Fenced Change = "fenced"
	// Timed: a leader uses the stricter of the old and the new value until the change is decided.
	Timed Change = "timed"
	// Reshaped: when the number of instances changes, at a place in the log.
	Reshaped Change = "reshaped"
	// Sealed: when one core seals the log and another one begins.
	Sealed Change = "sealed"
	// Never: a cluster keeps it as long as it exists.
	Never Change = "never"
)

// Tunable reports whether a running cluster can change such a setting.
func (c Change) Tunable() bool {
	switch c {
	case Local, ByEntry, Fenced, Timed, Reshaped:
		return true
	}
	return false
}

// Waits says what a change in a running cluster waits for, or why a running cluster cannot change such a setting.
func (c Change) Waits() string {
	switch c {
	case Restart:
		return "it is fixed until the member starts again"
	case Local:
		return "nothing: each member uses it when it applies the change"
	case ByEntry:
		return "nothing: commands have it from the leader's next one on"
	case Fenced:
		return "a fence in the log: commands wait a few round trips"
	case Timed:
		return "a majority: the leader uses the stricter of both values until the change is decided"
	case Reshaped:
		return "a place in the log at which all members have the new instances"
	case Sealed:
		return "a seal in the log: switch changes it, not tune"
	}
	return "it is fixed as long as the cluster exists"
}

// Setting declares one setting, whose values are of type T. It must not change once a table has it.
type Setting[T comparable] struct {
	Name    string // its flag, in lower case and with hyphens
	Default T
	// Text is the text format of values; nil: the usual one of int, bool, string and time.Duration.
	Text *Text[T]
	// Check is the set of allowed values; zero: all.
	Check Check[T]
	// Fill completes a value with omitted parts; nil: values have none.
	Fill func(T) T

	// Agree: all members of a cluster must have the same value. They compare it when they connect. Untold: the default
	// is not compared, because earlier versions did not know the setting.
	Agree, Untold bool
	Change        Change
	// Experiment: the setting is for measurements only, and no server has it.
	Experiment bool
	// Detour: with another value than the default, commands take another path or wait longer. So costs are measured
	// separately, and commands are expected to be slower.
	Detour bool

	Help string // its effect, in lower case, without the default
	// Parts are the flags of a setting that has several; nil: one flag with the setting's name.
	Parts []Part[T]
	// Draw is a value that the simulator may give another member of a cluster whose members have the value own;
	// below(n) draws a number from 0 to n-1. nil: the same value.
	Draw func(below func(int) int, own T) T
}

// Part is one flag of several that make up a setting.
type Part[T any] struct {
	Name, Help string
	Default    string // for help
	Text       string // the flag's type, for help
	Get        func(T) string
	// Set changes a complete value. The empty text is the default.
	Set func(*T, string) error
}

// About describes a setting without its type.
type About struct {
	Name, Type, Default, Range, Help  string
	Agree, Untold, Experiment, Detour bool
	Change                            Change
	Flags                             []string
}

// Any is a *[Setting] of any type. Its methods may be called concurrently.
type Any interface {
	// About describes the setting.
	About() About
	// canonical returns the normal text of a value, and whether it is the default. The error is an [*Error].
	canonical(text string) (string, bool, error)
	// take returns values with the setting from a field of an options struct: of its type, or as text.
	take(v Values, field any) (Values, error)
	flags(v *Values) []Flag
	draw(below func(int) int, v Values) Values
}

// About is [Any]'s.
func (s *Setting[T]) About() About {
	a := About{
		Name: s.Name, Type: s.text().Name, Default: s.text().Format(s.Default), Range: s.Check.Range, Help: s.Help,
		Agree: s.Agree, Untold: s.Untold, Experiment: s.Experiment, Detour: s.Detour, Change: s.Change,
	}
	for i := range s.Parts {
		a.Flags = append(a.Flags, s.Parts[i].Name)
	}
	if len(a.Flags) == 0 {
		a.Flags = []string{s.Name}
	}
	return a
}

// In returns the setting's value. The values must be complete ([Table.Complete]): In panics if they have a text that
// the setting does not allow.
func (s *Setting[T]) In(v Values) T {
	text, ok := v.Get(s.Name)
	if !ok {
		return s.Default
	}
	t, err := s.parse(text)
	if err != nil {
		panic(err)
	}
	return t
}

// Set returns values with another value of the setting. It is not validated.
func (s *Setting[T]) Set(v Values, t T) Values {
	if s.Fill != nil {
		t = s.Fill(t)
	}
	if t == s.Default {
		return v.Without(s.Name)
	}
	return v.with(s.Name, s.text().Format(t))
}

// parse reads and checks a text.
func (s *Setting[T]) parse(text string) (T, error) {
	t, err := s.text().Parse(text)
	if err == nil && s.Fill != nil {
		t = s.Fill(t)
	}
	if err == nil {
		err = s.Check.err(t)
	}
	if err != nil {
		return t, &Error{s.Name, text, err.Error()}
	}
	return t, nil
}

func (s *Setting[T]) canonical(text string) (string, bool, error) {
	t, err := s.parse(text)
	if err != nil {
		return "", false, err
	}
	return s.text().Format(t), t == s.Default, nil
}

func (s *Setting[T]) take(v Values, field any) (Values, error) {
	switch f := field.(type) {
	case T:
		var zero T
		if f == zero && s.Fill == nil {
			return v.Without(s.Name), nil // omitted
		}
		return s.checked(v, f)
	case string:
		if f == "" {
			return v.Without(s.Name), nil
		}
		t, err := s.parse(f)
		return s.Set(v, t), err
	}
	return v, &Error{s.Name, "", "is no field of this type"}
}

// checked sets a value that is allowed.
func (s *Setting[T]) checked(v Values, t T) (Values, error) {
	if s.Fill != nil {
		t = s.Fill(t)
	}
	if err := s.Check.err(t); err != nil {
		return v, &Error{s.Name, s.text().Format(t), err.Error()}
	}
	return s.Set(v, t), nil
}

func (s *Setting[T]) draw(below func(int) int, v Values) Values {
	if _, given := v.Get(s.Name); s.Draw == nil || !given {
		return v
	}
	return s.Set(v, s.Draw(below, s.In(v)))
}
