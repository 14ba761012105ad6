package registry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol/setting"
)

// TestChoose: "choose PROTOCOL [members=N]" with a line NAME=VALUE for each setting prints what a cluster runs with.
func TestChoose(t *testing.T) {
	datadriven.RunTest(t, "testdata/choices", func(t *testing.T, d *datadriven.TestData) string {
		members := 3
		d.MaybeScanArgs(t, "members", &members)
		v, err := setting.Parse(lines(d.Input)...)
		if err != nil {
			return err.Error() + "\n"
		}
		c, err := registry.Find(d.CmdArgs[0].Key).Choose(v, members)
		if err != nil {
			return err.Error() + "\n"
		}
		return fmt.Sprintf("%s\ninstances %d, groups %d, spread %v, own: %s\n", c.Values, c.Instances(), c.Groups(),
			c.Spread(), c.Own())
	})
}

func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}
