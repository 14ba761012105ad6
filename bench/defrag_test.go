package bench

import "testing"

// A key that is absent, older than its last acknowledged put, or newer without an error, is a violation.
func TestLastPutsAreCompared(t *testing.T) {
	for value, wrong := range map[string]bool{"": true, "x": true, "6": true, "7": false, "8": true} {
		p := &putter{key: []byte("put/0"), last: 7}
		if v := p.violation(value); (v != "") != wrong {
			t.Errorf("%q: %q", value, v)
		}
	}
	failed := &putter{last: 7, errors: 1}
	if failed.violation("8") != "" || failed.violation("6") == "" {
		t.Error("after an error only a later put may have taken effect")
	}
	if v := (&putter{errors: 1}).violation(""); v != "" {
		t.Error(v, "without an acknowledged put")
	}
}

// Violations of each round count, and figures are medians.
func TestDefragResultsAreMedians(t *testing.T) {
	var c DefragConfig
	c.Rounds, c.Dir = 3, t.TempDir()
	runs := []*DefragResult{{Protocol: "raft", DefragS: 3},
		{Protocol: "raft", DefragS: 1, Violations: []string{"lost"}},
		{Protocol: "raft", DefragS: 2, During: DefragPuts{Puts: 5, Errors: 1}}}
	out := newDefragContest(&c, [][]*DefragResult{runs, nil})
	if len(out.Results) != 1 || len(out.Runs) != 1 {
		t.Fatalf("%+v", out)
	}
	if m := out.Results[0]; m.DefragS != 2 || m.During.Puts != 0 || m.During.Errors != 1 {
		t.Errorf("%+v", m)
	}
	if v := out.Violation(); v != "raft: lost" {
		t.Error(v)
	}
	if newDefragContest(&c, make([][]*DefragResult, 2)) != nil {
		t.Error("a result without runs")
	}
}
