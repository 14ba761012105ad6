package settings

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	_ "github.com/cockroachdb/datadriven" // for its flag -rewrite

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/testdoc"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

const pageHead = `
## Settings of the log

All protocols have these settings; where one has no meaning, only its default is allowed. A setting is set by the flag
of its name, by a variable or in the file: "--code-k=3", "ETCD_CODE_K=3", or the key "code-k". The flags of the first
members give the first profile of a cluster, which is in its log. After that braid tune changes settings, and flags have
no effect on them. "Equal": members of an earlier version compare it, too. "Change": what a change waits for.

- local: nothing; each member has the new value when it applies the change
- by entry: nothing; commands have it from the leader's next one on
- fenced: what was accepted in lanes is in the log
- timed: a majority; until then the stricter of both values holds
- reshaped: a place in the log at which all members have the new instances

| setting | values | default | equal | change |
|---|---|---|---|---|
`

const pageOwn = `
The library takes the first three and fit in fields of Options, and the others in the structs that are named after
protocols (braid.CRaft{K: 3}) or by name (braid.Named("craft", "code-k=3")). The setting "fit-avoid" has no flag: the
leader sets it, and "braid tune fit-avoid=" clears it ([fitting](fit.md)).

## Settings of protocols

A setting belongs to some protocols and is refused with others. The library takes it in the struct of the protocol, as
braid.MultiPaxos{Relays: 3}, or by name. Sealed: braid switch changes it, not braid tune.

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
	testdoc.Part(t, "../../docs/using/settings.md", page(), rewrites())
}

// rewrites reports whether flag -rewrite is given.
func rewrites() bool { return flag.Lookup("rewrite").Value.String() == "true" }
