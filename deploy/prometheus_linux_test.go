package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/braidlog/braid/internal/testsize"
)

// TestRules: promtool accepts rules and example, and its tests of the rules succeed.
func TestRules(t *testing.T) {
	testsize.Only(t, testsize.Deploy)
	t.Parallel()
	do(t, "prometheus", "promtool", "check", "config", "prometheus.yml")
	do(t, "prometheus", "promtool", "check", "rules", "alerts.yml")
	do(t, "prometheus", "promtool", "test", "rules", "alerts_test.yml")
}

// prometheus is a Prometheus that scrapes a cluster.
type prometheus struct {
	t   *testing.T
	url string
}

// configuration is that of a Prometheus which scrapes often.
const configuration = `global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: [%s]
scrape_configs:
- job_name: braid
  static_configs: [{targets: [%s]}]
`

func startPrometheus(t *testing.T, targets []string) *prometheus {
	t.Helper()
	rules, err := filepath.Abs("prometheus/alerts.yml")
	require.NoError(t, err)
	dir, address := t.TempDir(), free(t)
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf(configuration, rules, strings.Join(targets, ","))
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	begin(t, dir, nil, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address)
	p := &prometheus{t, "http://" + address}
	eventually(t, "Prometheus is ready", func(ctx context.Context) bool { return answers(ctx, p.url+"/-/ready") })
	return p
}

// ask calls the API of Prometheus.
func (p *prometheus) ask(ctx context.Context, path string, result any) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	require.NoError(p.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(p.t, err)
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: result}
	require.NoError(p.t, json.NewDecoder(response.Body).Decode(&answer))
	require.Equal(p.t, "success", answer.Status, "%s: %s", path, answer.Error)
}

// finds reports whether an expression has a value now.
func (p *prometheus) finds(ctx context.Context, expr string) bool {
	var data struct{ Result []any }
	p.ask(ctx, "/api/v1/query?query="+url.QueryEscape(expr), &data)
	return len(data.Result) > 0
}

// findsAll waits until each expression has had a value.
func (p *prometheus) findsAll(exprs []string) {
	p.t.Helper()
	missing := slices.Clone(exprs)
	defer func() {
		if len(missing) > 0 {
			p.t.Logf("no value: %s", strings.Join(missing, "\n"))
		}
	}()
	eventually(p.t, "all queries have values", func(ctx context.Context) bool {
		missing = slices.DeleteFunc(missing, func(expr string) bool { return p.finds(ctx, expr) })
		return len(missing) == 0
	})
}

// cluster is a run of braid up.
type cluster struct {
	t     *testing.T
	braid string
	ends  []string    // addresses for clients
	pids  map[int]int // by the index in ends
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, braid: filepath.Join(release(t), "braid"), pids: map[int]int{}}
	p := begin(t, "", nil, c.braid, "up", "--json", "--base-port=0", "--data", filepath.Join(t.TempDir(), "data"),
		"--lane-prefix=k")
	eventually(t, "the cluster is ready", func(context.Context) bool {
		text, err := os.ReadFile(p.log)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			var e struct {
				Event     string
				PID       int
				Member    string
				Endpoints []string
			}
			if json.Unmarshal([]byte(line), &e) != nil {
				continue
			}
			if e.Event == "started" {
				c.pids[int(e.Member[1]-'1')] = e.PID
			}
			if e.Event == "ready" {
				c.ends = e.Endpoints
			}
		}
		return c.ends != nil
	})
	return c
}

func (c *cluster) ctl(args ...string) string {
	c.t.Helper()
	return do(c.t, "", c.braid, append([]string{"ctl", "--endpoints", strings.Join(c.ends, ",")}, args...)...)
}

// load puts, reads, and reads at a future revision, which fails, at each member, until the returned function is called.
func (c *cluster) load() (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var running sync.WaitGroup
	for _, end := range c.ends {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{end}, Logger: zap.NewNop()})
		require.NoError(c.t, err)
		running.Go(func() {
			defer client.Close()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				attempt, cancelAttempt := context.WithTimeout(ctx, time.Second)
				_, _ = client.Put(attempt, "k", "v") // attempts count, too
				_, _ = client.Get(attempt, "k")
				_, _ = client.Get(attempt, "k", clientv3.WithRev(1<<40))
				answers(attempt, "http://"+end+"/readyz")
				cancelAttempt()
				<-tick.C
			}
		})
	}
	return func() { cancel(); running.Wait() }
}

// selectors matches series with their labels; failures matches the selectors of codes and alarms that do not all occur
// here.
var (
	selectors = regexp.MustCompile(`\b(?:up|(?:etcd|braid|grpc_server|process)_\w+)\b(?:\{[^}]*\})?`)
	failures  = regexp.MustCompile(`,\s*(?:grpc_code=~"[^"]*"|alarm_type="CORRUPT")`)
)

// queriesOf returns the queries for which a cluster of a protocol has series, "": of each protocol: those of the
// dashboard, and the series of each alert, because an alert's whole expression has a value only while it fires.
func queriesOf(t *testing.T, protocol string) (exprs []string) {
	t.Helper()
	for _, r := range rows {
		for _, p := range r.panels {
			for _, q := range p.queries {
				if q.with == protocol && q.rare == "" {
					exprs = append(exprs, filled(q.expr, `job="braid",instance=~".*"`, "5s"))
				}
			}
		}
	}
	for _, r := range alertRules(t) {
		found := selectors.FindAllString(r.Expr, -1)
		require.NotEmpty(t, found, r.Alert)
		for _, s := range found {
			if protocolOf(s) == protocol {
				exprs = append(exprs, failures.ReplaceAllString(s, ""))
			}
		}
	}
	return exprs
}

// alarms separates queries that find a series only while an alarm is raised from the others.
func alarms(exprs []string) (alarms, others []string) {
	for _, e := range exprs {
		if strings.Contains(e, "etcd_debugging_server_alarms") {
			alarms = append(alarms, e)
		} else {
			others = append(others, e)
		}
	}
	return alarms, others
}

// protocolOf is the protocol that has a series; "": all.
func protocolOf(series string) string {
	switch {
	case strings.HasPrefix(series, "braid_lane_"):
		return "lcr"
	case strings.HasPrefix(series, "braid_epoch_"):
		return "iss"
	}
	return ""
}

// TestQueriesFindSeries: Prometheus scrapes a cluster that switches through the protocols, and each query of dashboard
// and rules finds a series. Then a majority is killed, and the alerts for that become active.
func TestQueriesFindSeries(t *testing.T) {
	testsize.Only(t, testsize.Deploy)
	t.Parallel()
	c := startCluster(t)
	p := startPrometheus(t, c.ends)
	id := regexp.MustCompile(`[0-9a-f]+`).FindString(c.ctl("member", "list"))
	var member uint64
	_, err := fmt.Sscanf(id, "%x", &member)
	require.NoError(t, err)
	body := fmt.Sprintf(`{"action":"ACTIVATE","memberID":"%d","alarm":"NOSPACE"}`, member)
	response, err := http.Post("http://"+c.ends[0]+"/v3/maintenance/alarm", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	alarm := `ALERTS{alertname="BraidAlarm",alarm_type="NOSPACE",server_id="` + id + `"}`
	whileRaised, queries := alarms(queriesOf(t, ""))
	require.NotEmpty(t, whileRaised)
	p.findsAll(append(whileRaised, alarm))
	c.ctl("alarm", "disarm")

	stop := c.load()
	defer stop()
	p.findsAll(queries)
	for _, protocol := range []string{"lcr", "niagara", "iss", "raft"} {
		do(t, "", c.braid, "switch", protocol, "--endpoints", strings.Join(c.ends, ","))
		if protocol == "niagara" {
			do(t, "", c.braid, "reshape", "--instances=2", "--endpoints", strings.Join(c.ends, ","))
		}
		p.findsAll(queriesOf(t, protocol)) // none are raft's alone
	}
	stop()
	p.requireHealthyRules()

	for n := range 2 {
		require.NoError(t, syscall.Kill(c.pids[n], syscall.SIGKILL))
	}
	for _, name := range []string{"BraidMajorityDown", "BraidNoLeader", "BraidMemberDown", "BraidMemberUnreachable"} {
		p.findsAll([]string{`ALERTS{alertname="` + name + `"}`})
	}
}

// requireHealthyRules requires that Prometheus evaluated all rules, without an error.
func (p *prometheus) requireHealthyRules() {
	p.t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	p.ask(p.t.Context(), "/api/v1/rules", &data)
	count := 0
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			require.Equal(p.t, "ok", r.Health, "%s: %s", r.Name, r.LastError)
			count++
		}
	}
	require.Len(p.t, alertRules(p.t), count)
}
