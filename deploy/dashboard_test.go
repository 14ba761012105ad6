package deploy

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the dashboard")

const dashboard = "grafana/braid.json"

type object = map[string]any

// source is the data source of all panels: a variable of the dashboard.
var source = object{"type": "prometheus", "uid": "${datasource}"}

// TestDashboard: the dashboard has the panels that panels_test.go lists.
func TestDashboard(t *testing.T) {
	want, err := json.MarshalIndent(object{
		"title": "braid", "uid": "braid", "tags": []string{"braid", "etcd"}, "schemaVersion": 39, "version": 1,
		"editable": true, "refresh": "30s", "time": object{"from": "now-1h", "to": "now"}, "timezone": "browser",
		"graphTooltip": 1, "templating": object{"list": variables()}, "panels": panels(),
	}, "", " ")
	require.NoError(t, err)
	want = append(want, '\n')
	if *rewrite {
		require.NoError(t, os.WriteFile(dashboard, want, 0o644))
		return
	}
	has, err := os.ReadFile(dashboard)
	require.NoError(t, err)
	require.Equal(t, string(want), string(has), "run it with -rewrite")
}

// variables are the choices of a viewer: a Prometheus, a cluster, and members.
func variables() []object {
	values := func(name, label, query string, several bool) object {
		return object{"name": name, "label": label, "type": "query", "datasource": source, "refresh": 2, "sort": 1,
			"query": object{"query": query, "refId": name}, "definition": query, "multi": several,
			"includeAll": several, "current": object{}}
	}
	return []object{
		{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": object{}},
		values("job", "Cluster", "label_values(etcd_server_has_leader, job)", false),
		values("instance", "Members", `label_values(etcd_server_has_leader{job="$job"}, instance)`, true),
	}
}

const (
	width, height, columns = 6, 7, 24 // of a panel, and of the page, in Grafana's units
)

// panels are all panels, row below row.
func panels() (out []object) {
	y := 0
	add := func(p object, x, y, w, h int) {
		p["id"], p["gridPos"] = len(out)+1, object{"x": x, "y": y, "w": w, "h": h}
		out = append(out, p)
	}
	for _, r := range rows {
		add(object{"type": "row", "title": r.title, "collapsed": false, "panels": []object{}}, 0, y, columns, 1)
		y++
		for i := range r.panels {
			x := i * width % columns
			if i > 0 && x == 0 {
				y += height
			}
			add(drawn(&r.panels[i]), x, y, width, height)
		}
		y += height
	}
	return out
}

// drawn is a panel as Grafana reads it.
func drawn(p *panel) object {
	var targets []object
	for i := range p.queries {
		q := &p.queries[i]
		targets = append(targets, object{"refId": string(rune('A' + i)), "datasource": source, "legendFormat": q.legend,
			"expr": filled(q.expr, `job="$job",instance=~"$instance"`, "$__rate_interval")})
	}
	return object{"type": "timeseries", "title": p.title, "datasource": source, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
		"options": object{"tooltip": object{"mode": "multi", "sort": "desc"},
			"legend": object{"displayMode": "list", "placement": "bottom"}}}
}

// filled is the expression of a query with selectors and an interval in it.
func filled(expr, selectors, interval string) string {
	return strings.NewReplacer("$S", selectors, "$I", interval).Replace(expr)
}
