package registry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol/setting"
)

// TestTune: "tune PROTOCOL" with a line NAME=VALUE for each setting prints the profile after that, or its refusal.
// with=(NAME=VALUE…) are those with which the cluster began. "table PROTOCOL" prints the values and defaults of all
// settings in a log that has several instances by now.
func TestTune(t *testing.T) {
	datadriven.RunTest(t, "testdata/tunes", func(t *testing.T, d *datadriven.TestData) string {
		var flags []string
		for _, a := range d.CmdArgs {
			if a.Key == "with" {
				flags = a.Vals
			}
		}
		instances := 1
		d.MaybeScanArgs(t, "instances", &instances)
		c, err := registry.Find(d.CmdArgs[0].Key).Choose(setting.MustParse(flags...), 3)
		if err != nil {
			return err.Error() + "\n"
		}
		if d.Cmd == "table" {
			var b strings.Builder
			for _, row := range c.Tunables(registry.WithInstances(c.Profile(), instances)) {
				fmt.Fprintf(&b, "%s is %q, default %q\n", row.Name, row.Value, row.Default)
			}
			return b.String()
		}
		set := map[string]string{}
		for _, line := range lines(d.Input) {
			name, value, _ := strings.Cut(line, "=")
			set[name] = value
		}
		next, n, err := c.Tune(c.Profile(), set)
		if err != nil {
			return err.Error() + "\n"
		}
		return fmt.Sprintf("%s\ninstances %d\n", next, n)
	})
}
