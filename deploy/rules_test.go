package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// rule is an alert rule of Prometheus.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// alertRules are those of prometheus/alerts.yml.
func alertRules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	text, err := os.ReadFile("prometheus/alerts.yml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, &file))
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// TestRulesLeadToPages: each alert has a severity, a section of a page that explains it, and a test for promtool.
func TestRulesLeadToPages(t *testing.T) {
	var tests struct {
		Tests []struct {
			Name string `json:"name"`
		} `json:"tests"`
	}
	text, err := os.ReadFile("prometheus/alerts_test.yml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &tests))
	var tried, named []string
	for _, test := range tests.Tests {
		tried = append(tried, test.Name)
	}
	for _, r := range alertRules(t) {
		named = append(named, r.Alert)
		require.Contains(t, []string{"warning", "critical"}, r.Labels["severity"], r.Alert)
		require.Contains(t, r.Annotations["summary"], "{{ $labels.job }}: ", r.Alert)
		page, anchor, _ := strings.Cut(r.Annotations["page"], "#")
		text, err := os.ReadFile(filepath.Join("../docs/using", page))
		require.NoError(t, err)
		require.Contains(t, anchors(string(text)), anchor, r.Alert)
	}
	require.ElementsMatch(t, named, tried)
}

// anchors are the anchors of the headings of a page.
func anchors(page string) (out []string) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") {
			heading := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
			out = append(out, strings.ReplaceAll(strings.Map(func(r rune) rune {
				if strings.ContainsRune(".,:;()'?", r) {
					return -1
				}
				return r
			}, heading), " ", "-"))
		}
	}
	return out
}
