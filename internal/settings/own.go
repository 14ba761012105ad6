package settings

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// OwnFlags registers the flags of protocols' own settings; parsing them changes v. having returns the protocols with
// a setting, of those that the command knows. Experiments: the table has settings that no server has.
func OwnFlags(f *pflag.FlagSet, table setting.Table, having func(setting string) []string, experiments bool,
	v *setting.Values) {
	for _, row := range table.Rows {
		usage := "with " + registry.List(having(row.About().Name)) + ": "
		register(f, setting.Table{Rows: []setting.Any{row}}.Flags(v, experiments), usage)
	}
}

// OfMember reports whether a name is that of a flag of a member that sets nothing that the members of a cluster share.
// The protocol follows from settings that they share.
func OfMember(name string) bool {
	all, shared := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	new(Settings).Flags(all)
	CommonFlags(shared, setting.Union(common.Settings, registry.ServerSettings()), new(setting.Values))
	return all.Lookup(name) != nil && shared.Lookup(name) == nil && name != "protocol"
}

// CommonFlags registers the flags of settings that all protocols have; parsing them changes v.
func CommonFlags(f *pflag.FlagSet, table setting.Table, v *setting.Values) {
	register(f, table.Flags(v, false), "")
}

// register registers flags, with the beginning of their usage texts.
func register(f *pflag.FlagSet, flags []setting.Flag, usage string) {
	for i := range flags {
		if flags[i].IsBoolFlag() {
			f.VarPF(&flags[i], flags[i].Name, "", usage+flags[i].Usage).NoOptDefVal = "true"
			continue
		}
		value := struct{ pflag.Value }{&flags[i]} // pflag takes a value that has IsBoolFlag for a bool
		f.Var(value, flags[i].Name, usage+flags[i].Usage)
	}
}

// flagError is an error of a setting, with the setting's flag in place of its name.
type flagError struct {
	text string
	err  error
}

func (e *flagError) Error() string { return e.text }

func (e *flagError) Unwrap() error { return e.err }

// FlagError replaces the name of an invalid setting by its flags.
func FlagError(err error) error {
	if e := (*registry.ChoiceError)(nil); errors.As(err, &e) {
		return &flagError{"--" + err.Error(), err} // it begins with the setting's name
	}
	var e *setting.Error
	if !errors.As(err, &e) {
		return err
	}
	row := setting.Union(common.Settings, registry.Settings()).Find(e.Name)
	if row == nil {
		return err
	}
	flags := row.About().Flags
	if len(flags) == 1 {
		return &flagError{(&setting.Error{Name: "--" + flags[0], Text: e.Text, Detail: e.Detail}).Error(), err}
	}
	var names []string
	for _, name := range flags {
		names = append(names, "--"+name)
	}
	return fmt.Errorf("%s: %w", registry.List(names), err)
}

// EpochNames are the names of the flags of a protocol's epochs.
var EpochNames = registry.Settings().Find(epochsName).About().Flags

const epochsName = "epochs"

// EpochArgs are these flags, with the values of a protocol with epochs; none for any other one. The settings are
// complete.
func EpochArgs(protocol string, v setting.Values) []string {
	p := registry.Find(protocol)
	if p == nil || p.Core.Settings.Find(epochsName) == nil {
		return nil
	}
	return setting.Table{Rows: []setting.Any{p.Core.Settings.Find(epochsName)}}.AllArgs(v)
}
