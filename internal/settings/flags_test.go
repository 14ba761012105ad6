package settings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// TestFlags: flags, and with them the variables and the keys of files, keep their names, types and defaults.
func TestFlags(t *testing.T) {
	datadriven.RunTest(t, "testdata/flags", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		new(Settings).Flags(f)
		f.VisitAll(func(flag *pflag.Flag) {
			if flag.Hidden {
				return
			}
			fmt.Fprintf(&out, "--%s %s (%s)", flag.Name, flag.Value.Type(), variable(flag.Name))
			if flag.DefValue != "" {
				fmt.Fprintf(&out, " default %s", flag.DefValue)
			}
			if flag.NoOptDefVal != "" {
				fmt.Fprintf(&out, ", alone %s", flag.NoOptDefVal)
			}
			out.WriteByte('\n')
		})
		return out.String()
	})
}

// TestHelpNamesNoDefaultOfZero: a default of off is not printed, for a setting as for any other flag.
func TestHelpNamesNoDefaultOfZero(t *testing.T) {
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	new(Settings).Flags(f)
	require.NotContains(t, f.FlagUsages(), "(default 0)")
	require.Contains(t, f.FlagUsages(), "at least 3 heartbeats (default 1000)")
}
