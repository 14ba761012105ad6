package setting

import (
	"strconv"
	"strings"
)

// Flag is a flag that changes values. It implements the Value interfaces of packages flag and pflag.
type Flag struct {
	Name  string
	Usage string // with the default, if String does not have it
	off   string // the result of String for the default
	get   func() string
	full  func() string // the text, even of the default
	set   func(string) error
	typ   string
}

// String is the value's text. For a default only numbers and booleans have one.
func (f *Flag) String() string {
	if f.get == nil {
		return ""
	}
	return f.get()
}

// Set changes the values. The error is an [*Error].
func (f *Flag) Set(text string) error { return f.set(text) }

// Type is the name of the flag's type.
func (f *Flag) Type() string { return f.typ }

// IsBoolFlag reports whether the flag may stand alone.
func (f *Flag) IsBoolFlag() bool { return f.typ == bools.Name }

// shown reports whether a default is a flag's text, as for numbers and booleans.
func shown(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil || text == "0s" || text == "false"
}

// unset returns the text of a flag that is not set, and its usage, with the default if the text does not have it.
func unset(standard, usage string) (text, help string) {
	switch {
	case shown(standard):
		return standard, usage
	case standard != "":
		usage += " (default " + standard + ")"
	}
	return "", usage
}

// Flags are the flags of all settings of the table; setting them changes v. experiments includes those of settings
// that no server has.
func (t Table) Flags(v *Values, experiments bool) (all []Flag) {
	for _, r := range t.Rows {
		if experiments || !r.About().Experiment {
			all = append(all, r.flags(v)...)
		}
	}
	return all
}

// Args are the arguments of a command with the flags, for values other than the defaults.
func (t Table) Args(v Values) (args []string) {
	for _, f := range t.Flags(&v, true) {
		if text := f.get(); text != f.off {
			args = append(args, "--"+f.Name+"="+text)
		}
	}
	return args
}

// AllArgs are the arguments for all settings, even those with their defaults. Without an argument, a boolean is
// false.
func (t Table) AllArgs(v Values) (args []string) {
	for _, f := range t.Flags(&v, true) {
		if text := f.full(); text != "" && text != "false" {
			args = append(args, "--"+f.Name+"="+text)
		}
	}
	return args
}

func (s *Setting[T]) flags(v *Values) (all []Flag) {
	if len(s.Parts) == 0 {
		return []Flag{s.flag(v)}
	}
	for i := range s.Parts {
		all = append(all, s.part(v, &s.Parts[i]))
	}
	return all
}

// flag is the one flag of a setting.
func (s *Setting[T]) flag(v *Values) Flag {
	off, usage := unset(s.text().Format(s.Default), s.Help)
	f := Flag{Name: s.Name, Usage: usage, off: off, typ: s.text().Name}
	f.get = func() string {
		if text, given := v.Get(s.Name); given {
			return text
		}
		return off
	}
	f.full = func() string { return Table{Rows: []Any{s}}.Text(s.Name, *v) }
	f.set = func(text string) error {
		if text == "" && off == "" {
			*v = v.Without(s.Name)
			return nil
		}
		t, err := s.text().Parse(text)
		if err != nil {
			return &Error{s.Name, text, err.Error()}
		}
		*v = s.Set(*v, t)
		return nil
	}
	return f
}

// part is a flag that is a part of a setting.
func (s *Setting[T]) part(v *Values, p *Part[T]) Flag {
	off, usage := unset(p.Default, p.Help)
	f := Flag{Name: p.Name, Usage: usage, off: off, typ: p.Text}
	now := func() T {
		text, given := v.Get(s.Name)
		if t, err := s.text().Parse(text); given && err == nil {
			return t
		}
		return s.Default
	}
	f.get = func() string {
		if text := p.Get(now()); text != p.Default {
			return text
		}
		return off
	}
	f.full = func() string { return p.Get(now()) }
	f.set = func(text string) error {
		t := now()
		if err := p.Set(&t, text); err != nil {
			return &Error{strings.TrimPrefix(p.Name, "--"), text, err.Error()}
		}
		*v = s.Set(*v, t)
		return nil
	}
	return f
}
