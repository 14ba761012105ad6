package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid/internal/testdoc"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the parts of documents that tests write")

// differentCommands are commands that do not print the same on etcd and on braid.
var differentCommands = map[string]string{
	"check datascale":    "measures: passes as on etcd",
	"check perf":         "measures: passes as on etcd",
	"downgrade enable":   "the version before this one is refused, as all others: restore a snapshot with it",
	"downgrade validate": "as above",
}

// leaves returns the commands below one that do something.
func leaves(c *cobra.Command) (all []string) {
	if c.Runnable() && !c.Hidden {
		_, name, _ := strings.Cut(c.CommandPath(), " ")
		all = append(all, name)
	}
	for _, sub := range c.Commands() {
		all = append(all, leaves(sub)...)
	}
	return all
}

// TestCtlPage writes the commands of etcdctl into docs/compatibility.md. bench/rivals/same compares what each of those
// that are the same prints.
func TestCtlPage(t *testing.T) {
	var same []string
	for _, name := range leaves(newCtlCommand()) {
		if differentCommands[name] == "" {
			same = append(same, "`"+name+"`")
		}
	}
	slices.Sort(same)
	var rows strings.Builder
	for _, name := range slices.Sorted(maps.Keys(differentCommands)) {
		fmt.Fprintf(&rows, "| `%s` | %s |\n", name, differentCommands[name])
	}
	testdoc.Part(t, "../../docs/compatibility.md",
		"\nThe same: "+strings.Join(same, ", ")+".\n\n| command | |\n|---|---|\n"+rows.String(), *rewrite)
}
