package settings

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// OwnFlags registers the flags of protocols' own settings; parsing them changes v. having says which protocols have a
// setting, of those that the command knows. Experiments says whether settings are among them that no server has.
func OwnFlags(f *pflag.FlagSet, table setting.Table, having func(setting string) []string, experiments bool, v *setting.Values) {
	for _, row := range table.Rows {
		usage := "with " + list(having(row.About().Name)) + ": "
		register(f, setting.Table{Rows: []setting.Any{row}}.Flags(v, experiments), usage)
	}
}

// CommonFlags registers the flags of settings that all protocols have; parsing them changes v.
func CommonFlags(f *pflag.FlagSet, table setting.Table, v *setting.Values) {
	register(f, table.Flags(v, false), "")
}

// register registers flags, with what their usage begins with.
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

// FlagError names the flags of a setting that is wrong.
func FlagError(err error) error {
	if e := (*registry.ChoiceError)(nil); errors.As(err, &e) {
		return fmt.Errorf("--%s: %w", e.What, err)
	}
	var e *setting.Error
	if !errors.As(err, &e) {
		return err
	}
	row := setting.Union(common.Settings, registry.Settings()).Find(e.Name)
	if row == nil {
		return err
	}
	var flags []string
	for _, name := range row.About().Flags {
		flags = append(flags, "--"+name)
	}
	return fmt.Errorf("%s: %w", list(flags), err)
}

// EpochNames are the names of the flags of a protocol's epochs.
var EpochNames = registry.Settings().Find(epochsName).About().Flags

const epochsName = "epochs"

// EpochArgs are these flags, with what is set of a protocol with epochs; none for any other one. The settings are
// complete.
func EpochArgs(protocol string, v setting.Values) []string {
	p := registry.Find(protocol)
	if p == nil || p.Core.Settings.Find(epochsName) == nil {
		return nil
	}
	return setting.Table{Rows: []setting.Any{p.Core.Settings.Find(epochsName)}}.AllArgs(v)
}
