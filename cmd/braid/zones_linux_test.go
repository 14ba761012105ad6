package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
)

// zonesOf are the lines of the table of zones of braid status.
func zonesOf(t *testing.T, endpoint string) (lines []string) {
	t.Helper()
	out, _, _ := do(t, "", "status", "--endpoints", endpoint) // some members may be down
	for line := range strings.Lines(out) {
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case line == "ZONE MEMBERS", lines != nil && line != "":
			lines = append(lines, line)
		case lines != nil:
			return lines
		}
	}
	return lines
}

// inZones waits until the members are in these zones.
func inZones(t *testing.T, endpoint string, want ...string) {
	t.Helper()
	eventually(t, "zones "+strings.Join(want, "; "), func(context.Context) bool {
		lines := zonesOf(t, endpoint)
		return strings.Join(lines, "\n") == strings.Join(append([]string{"ZONE MEMBERS"}, want...), "\n")
	})
}

// TestZoneIsLost: of six voters in three zones a zone is lost, with the leader in it. These quorums tolerate any one
// voter or any one zone. The others elect another leader, and decide.
func TestZoneIsLost(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), "--nodes=6", "--zones=a,b,c", multiPaxos, "--quorums=zones:3/1/0")
	inZones(t, c.endpoints[0], "a m1, m4", "b m2, m5", "c m3, m6")
	w := write(t, c)
	eventually(t, "writes", func(context.Context) bool { return w.total() > 50 })
	lost := map[string][]string{"m1": {"m1", "m4"}, "m4": {"m4", "m1"}, "m2": {"m2", "m5"}, "m5": {"m5", "m2"},
		"m3": {"m3", "m6"}, "m6": {"m6", "m3"}}[c.leader()]
	for _, name := range lost {
		kill(t, c.pids[name])
	}
	before := w.total()
	eventually(t, "writes without a zone", func(context.Context) bool { return w.total() > before+200 })
	w.end()
	for name, url := range c.clients {
		if name != lost[0] && name != lost[1] {
			w.check(t, c.client(strings.TrimPrefix(url, "http://")))
		}
	}
}

// TestZoneChanges: a member that starts again with another zone changes the membership, and a member that joins brings
// its own. A zone that quorums by zones cannot have is refused with the reason, and holds nothing else up.
func TestZoneChanges(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	dir := dataDir(t)
	flags := []string{"--nodes=3", "--protocol=iss", "--quorums=zones:2/0/0"}
	c := up(t, dir, append(flags, "--zones=a,b,a")...)
	inZones(t, c.endpoints[0], "a m1, m3", "b m2")
	kill(t, c.cmd.Process.Pid) // the members end with it
	<-c.ended
	c = up(t, dir, "--zones=a,b,b")
	inZones(t, c.endpoints[0], "a m1", "b m2, m3")

	f := newServeFlags(t)
	f.name = "m4"
	join := []string{"--initial-cluster-state=existing", "--join", "http://" + c.endpoints[0], "--protocol=iss",
		"--quorums=zones:2/0/0", "--zone=c"}
	ok(t, "ctl", "--endpoints", c.endpoints[0], "member", "add", "m4", "--peer-urls", "http://"+f.peer, "--learner")
	m4 := serving(t, f, join...)
	inZones(t, c.endpoints[0], "a m1", "b m2, m3", "c m4") // a learner counts for no quorum
	_, stderr, code := do(t, "", "ctl", "--endpoints", c.endpoints[0], "member", "promote", idOf(t, c, "m4"))
	require.NotZero(t, code)
	require.Contains(t, stderr, "every voter needs one, and their number is fixed")
	stopped(t, m4)
	join[len(join)-1] = "--zone=a"
	serving(t, f, join...)
	inZones(t, c.endpoints[0], "a m1, m4", "b m2, m3")
	ok(t, "ctl", "--endpoints", c.endpoints[0], "member", "promote", idOf(t, c, "m4"))
	ok(t, "zones", "--endpoints", c.endpoints[0], "m1=x", "m4=x", "m3=y", "m2=y")
	inZones(t, c.endpoints[0], "x m1, m4", "y m2, m3")
}

// idOf is the id of the member with a name.
func idOf(t *testing.T, c *cluster, name string) (id string) {
	t.Helper()
	list, err := c.client(c.endpoints[0]).MemberList(t.Context())
	require.NoError(t, err)
	for _, m := range list.Members {
		if m.Name == name {
			id = fmt.Sprintf("%x", m.ID)
		}
	}
	require.NotEmpty(t, id, "%v", list.Members)
	return id
}
