package server

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "github.com/cockroachdb/datadriven" // for its flag -rewrite
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testdoc"
	"github.com/braidlog/braid/server/internal/metrics"
)

const compatibility = "../docs/compatibility.md"

func rewrites() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// TestServicesPage writes which methods docs/compatibility.md lists.
func TestServicesPage(t *testing.T) {
	f := start(t)
	rows := []string{"| service | methods |", "|---|---|"}
	for service, info := range f.grpc.GetServiceInfo() {
		if !strings.HasPrefix(service, "etcdserverpb.") && !strings.HasPrefix(service, "v3") {
			continue
		}
		var methods []string
		for _, m := range info.Methods {
			methods = append(methods, "`"+m.Name+"`")
		}
		slices.Sort(methods)
		rows = append(rows, fmt.Sprintf("| `%s` | %s |", service, strings.Join(methods, ", ")))
	}
	slices.Sort(rows[2:])
	testdoc.Part(t, compatibility, "\n"+strings.Join(rows, "\n")+"\n", rewrites())
}

// names are those of a collector's metrics.
func names(describe func(chan<- *prometheus.Desc)) map[string]bool {
	found := make(chan *prometheus.Desc)
	go func() {
		describe(found)
		close(found)
	}()
	name, out := regexp.MustCompile(`fqName: "([^"]*)"`), map[string]bool{}
	for d := range found {
		out[name.FindStringSubmatch(d.String())[1]] = true
	}
	return out
}

// TestMetricsPage writes which metrics of etcd docs/compatibility.md lists: each is here, or there is a reason.
func TestMetricsPage(t *testing.T) {
	list, err := os.ReadFile("internal/metrics/testdata/etcd-metrics")
	require.NoError(t, err)
	own := names(metrics.NewCollector(metrics.New(true), nil).Describe)
	process := names(prometheus.DefaultRegisterer.(*prometheus.Registry).Describe)
	var same []string
	var rows strings.Builder
	absent := 0
	for name := range strings.FieldsSeq(string(list)) {
		why, without := metrics.Absent[name]
		require.True(t, own[name] || without || process[name], "%s is not here, and nothing says why", name)
		require.False(t, own[name] && without, "%s is here", name)
		if without {
			absent++
			fmt.Fprintf(&rows, "| `%s` | absent: %s |\n", name, why)
			continue
		}
		same = append(same, "`"+name+"`")
	}
	require.Len(t, metrics.Absent, absent, "one of them is none of etcd's")
	testdoc.Part(t, compatibility, "\nThe same: "+strings.Join(same, ", ")+".\n\n| metric | |\n|---|---|\n"+rows.String(),
		rewrites())
}
