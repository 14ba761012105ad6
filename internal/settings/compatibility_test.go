package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/braidlog/braid/internal/testdoc"
)

// different are flags of etcd that work, and are not quite the same.
var different = map[string]string{
	"data-dir": "a directory of braid; one of etcd is refused",
	"name":     "the id of a first member follows from it, not from its URLs",

	"discovery-srv":                  "each founding member is named after its record until it has started",
	"force-new-cluster":              "once; the cluster gets another id, and the former data is kept in a folder",
	"strict-reconfig-check":          "with `false` changes after which no majority would decide are still refused",
	"initial-cluster-state":          "`existing` asks the others; `--join` does so, too",
	"heartbeat-interval":             "in the log's profile: `braid tune` changes it",
	"election-timeout":               "in the log's profile: `braid tune` changes it",
	"max-request-bytes":              "32 MiB, not 1.5",
	"max-concurrent-streams":         "4096, not without a limit",
	"log-format":                     "`text`, also called `console`, or `json`",
	"log-outputs":                    "`systemd/journal` also beside others",
	"backend-batch-limit":            "1000, not 10000",
	"compact-hash-check-time":        "always on",
	"log-level":                      "`panic` and `fatal` are `error`",
	"warning-apply-duration":         "more than 0; slow reads are logged by --warning-unary-request-duration",
	"warning-unary-request-duration": "more than 0; one line a second at most, with the time of each stage",
	"enable-distributed-tracing":     "spans of calls are etcd's; those below are the stages of braid",
	"wal-dir":                        "of the log with its snapshots and large values; `DATA-DIR/replica` is a link to it",
	"listen-peer-urls":               "links of braid over TCP, without `unix://`; members of etcd cannot connect",
	"feature-gates":                  "known; gates have one value each, and others are reported",
}

// flagsPage is what a flag of etcd does here.
func flagsPage(t *testing.T) string {
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	s := &Settings{}
	s.Flags(f)
	foreigners := map[string]*foreign{}
	for _, v := range s.foreign {
		foreigners[v.name] = v
	}
	var same []string
	var rows strings.Builder
	for _, name := range slices.Sorted(maps.Keys(etcdFlags(t))) {
		v, why := foreigners[name], different[name]
		switch {
		case v != nil && v.refuse:
			fmt.Fprintf(&rows, "| `--%s` | refused | %s |\n", name, v.why)
		case v != nil && v.harmless != "":
			fmt.Fprintf(&rows, "| `--%s` | `%s` is as in etcd; others are reported | %s |\n", name, v.harmless, v.why)
		case v != nil:
			fmt.Fprintf(&rows, "| `--%s` | no effect, and reported | %s |\n", name, v.why)
		case why != "":
			fmt.Fprintf(&rows, "| `--%s` | works | %s |\n", name, why)
		default:
			same = append(same, "`--"+name+"`")
		}
	}
	return "\nThe same: " + strings.Join(same, ", ") + ".\n\n| flag | here | |\n|---|---|---|\n" + rows.String()
}

// TestFlagsPage writes what docs/compatibility.md says of etcd's flags.
func TestFlagsPage(t *testing.T) {
	testdoc.Part(t, "../../docs/compatibility.md", flagsPage(t), rewrites())
}
