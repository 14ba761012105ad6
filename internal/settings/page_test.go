package settings

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	_ "github.com/cockroachdb/datadriven" // for its flag -rewrite
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

const pageHead = `
## Settings of the log

All protocols have these settings; where one has no meaning, only its default is allowed. A setting is set by the flag
of its name, by a variable or in the file: "--code-k=3", "ETCD_CODE_K=3", or the key "code-k". "Equal": all members must
have the same value, which they compare when they connect. "Change": how another value can come into effect in a version
that changes it while the cluster runs. This version does so for "reshaped" alone, by braid reshape: the others wait
until the members restart, as described below.

| setting | values | default | equal | change |
|---|---|---|---|---|
`

const pageOwn = `
The library takes the first three in fields of Options, and the others in the structs that are named after protocols
(braid.CRaft{K: 3}) or by name (braid.Named("craft", "code-k=3")).

## Settings of protocols

A setting belongs to some protocols and is refused with others. The library takes it in the struct of the protocol, as
braid.MultiPaxos{Relays: 3}, or by name. Local: another value comes into effect when the member restarts with it, and
members may differ. Sealed: where one protocol ends the log of another, which no version does yet, so a cluster keeps
its value.

| setting | protocols | values | default | equal | change |
|---|---|---|---|---|---|
`

// page is the part of docs/using/settings.md that is written by TestSettingsPage.
func page() string {
	var out strings.Builder
	out.WriteString(pageHead)
	shared := setting.Union(common.Time, Layout).Rows
	for _, r := range shared {
		a := r.About()
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", a.Name, valuesOf(&a), defaultOf(&a), yesNo(a.Agree), a.Change)
	}
	out.WriteString(pageOwn)
	rows := registry.Settings().Rows
	line := func(a *setting.About) {
		name := "`" + a.Name + "`"
		if a.Flags[0] != a.Name {
			name += ": `--" + strings.Join(a.Flags, "`, `--") + "`"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", name, strings.Join(registry.Having(a.Name), ", "), valuesOf(a),
			a.Default, yesNo(a.Agree), a.Change)
	}
	for _, r := range rows {
		if a := r.About(); !a.Experiment {
			line(&a)
		}
	}
	out.WriteString("\nFor measurements alone, with `braid bench` and `braid sim`, there are also:\n\n| setting | " +
		"protocols | values | default | equal | change |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		if a := r.About(); a.Experiment {
			line(&a)
		}
	}
	out.WriteString("\nWhat they do:\n\n")
	for _, r := range slices.Concat(shared, rows) {
		a := r.About()
		fmt.Fprintf(&out, "- `%s`: %s\n", a.Name, a.Help)
	}
	return out.String()
}

func valuesOf(a *setting.About) string {
	if a.Range == "" {
		return a.Type
	}
	return a.Type + ", " + a.Range
}

func defaultOf(a *setting.About) string {
	if a.Default == "" {
		return "the protocol's"
	}
	return a.Default
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
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
