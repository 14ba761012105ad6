package settings

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	_ "github.com/cockroachdb/datadriven" // for its flag -rewrite
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol/setting"
)

const pageHead = `
## Settings of protocols

A setting belongs to some protocols and is refused with others. It is set by the flag of its name, by a variable or in the
file: "--relays=3", "ETCD_RELAYS=3", or the key "relays". The library takes it in Options.Settings. "Equal": all members must
have the same value, which they compare when they connect. "Change" says how another value comes into effect. Local: when
the member restarts with it, and members may differ. Sealed: where one protocol ends the log of another, which no version
does yet, so a cluster keeps its value.

| setting | protocols | values | default | equal | change |
|---|---|---|---|---|---|
`

// page is the part of docs/using/settings.md that is written by TestSettingsPage.
func page() string {
	var out strings.Builder
	out.WriteString(pageHead)
	rows := registry.Settings().Rows
	line := func(a *setting.About) {
		name, values := "`"+a.Name+"`", a.Type
		if a.Flags[0] != a.Name {
			name += ": `--" + strings.Join(a.Flags, "`, `--") + "`"
		}
		if a.Range != "" {
			values += ", " + a.Range
		}
		equal := "no"
		if a.Agree {
			equal = "yes"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", name, strings.Join(registry.Having(a.Name), ", "), values, a.Default, equal, a.Change)
	}
	for _, r := range rows {
		if a := r.About(); !a.Experiment {
			line(&a)
		}
	}
	out.WriteString("\nFor measurements alone, with `braid bench` and `braid sim`, there are also:\n\n| setting | protocols | values | default | equal | change |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		if a := r.About(); a.Experiment {
			line(&a)
		}
	}
	out.WriteString("\nWhat they do:\n\n")
	for _, r := range rows {
		a := r.About()
		fmt.Fprintf(&out, "- `%s`: %s\n", a.Name, a.Help)
	}
	return out.String()
}

func TestSettingsPage(t *testing.T) {
	const file, from, to = "../../docs/using/settings.md", "-rewrite -->\n", "\n<!-- To here. -->"
	has, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(has), from)
	part, after, ends := strings.Cut(rest, to)
	require.True(t, ok && ends, "%s has no place for the settings of protocols", file)
	if flag.Lookup("rewrite").Value.String() == "true" {
		require.NoError(t, os.WriteFile(file, []byte(before+from+page()+to+after), 0o644))
		return
	}
	require.Equal(t, page(), part, "run it with -rewrite")
}
