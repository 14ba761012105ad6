package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/status"
)

// table runs showStatus and returns the lines of the table whose head contains column, with
// one space between cells.
func table(t *testing.T, column string, members ...status.Member) (lines []string) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, showStatus(&out, members, false))
	for line := range strings.Lines(out.String()) {
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case strings.Contains(line, column), lines != nil && line != "":
			lines = append(lines, line)
		case lines != nil:
			return lines
		}
	}
	return lines
}

func TestStatusOfBodies(t *testing.T) {
	lacks, holds := true, false
	leader := status.Member{
		Name: "m1", ID: "1", Leader: "1", Ready: true, Placement: "code",
		Bodies:    status.Bodies{Held: 3, LiveBytes: 3 << 20, TotalBytes: 64 << 20, Fetched: 2, Served: 4, Corrupt: 1, Repaired: 1},
		Instances: []status.Instance{{Instance: 1, Role: "leader", Leader: "1", K: 2}},
		Members:   []status.Peer{{ID: "1"}, {ID: "2", Lacking: &lacks}, {ID: "3", Lacking: &holds}, {ID: "4", Lacking: &lacks}},
	}
	follower := func(name, id string, change func(*status.Member)) status.Member {
		m := status.Member{Name: name, ID: id, Leader: "1", Ready: true, Placement: "code", Instances: []status.Instance{{Instance: 1, Leader: "1"}}}
		if change != nil {
			change(&m)
		}
		return m
	}
	got := table(t, "PLACEMENT", leader, follower("m2", "2", nil), follower("m3", "3", nil),
		follower("m4", "4", func(m *status.Member) { m.Bodies.Missing, m.Bodies.Failing = 1, "1 of 2 fragments" }),
		follower("m5", "5", func(m *status.Member) { m.Instances[0].Lacking = true }),
		follower("m6", "6", func(m *status.Member) { m.Instances[0].Preparing = 7 }))
	require.Equal(t, []string{
		"MEMBER PLACEMENT CUT IN BODIES BYTES FILES MISSING FETCHED SERVED DAMAGED REPAIRED STATE",
		"m1 code 2 3 3 MiB 64 MiB 0 2 4 1 1 complete",
		"m2 code - 0 0 B 0 B 0 0 0 0 0 lacks some, its leader says",
		"m3 code - 0 0 B 0 B 0 0 0 0 0 complete",
		"m4 code - 0 0 B 0 B 1 0 0 0 0 cannot restore: 1 of 2 fragments",
		"m5 code - 0 0 B 0 B 0 0 0 0 0 restores what it lacks",
		"m6 code - 0 0 B 0 B 0 0 0 0 0 prepares to lead: 7 to be made whole",
	}, got)
	require.Empty(t, table(t, "PLACEMENT", status.Member{Name: "etcd", ID: "1", Ready: true}))
}

func TestStatusAsJSON(t *testing.T) {
	var out bytes.Buffer
	member := status.Member{Name: "m1", ID: "1", Ready: true, Placement: "code", Bodies: status.Bodies{Held: 3, Repaired: 1}}
	require.NoError(t, showStatus(&out, []status.Member{member}, true))
	var got []status.Member
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, []status.Member{member}, got)
	require.Error(t, showStatus(&out, []status.Member{{Error: "no answer"}}, true))
}
