package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/internal/testsize"
)

// jsonLog is the environment in which the members of braid up write their logs as JSON.
var jsonLog = []string{"ETCD_LOG_FORMAT=json"}

// logLine is an event as a line of a member's log.
type logLine map[string]any

// logged returns the first line of a kind of event in a log. It must have a level and the attributes, durations must
// have units, and ids of members their names.
func logged(t *testing.T, log, kind, level string, attributes ...string) (found logLine) {
	t.Helper()
	scan := bufio.NewScanner(strings.NewReader(log))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() && found == nil {
		var l logLine
		if json.Unmarshal(scan.Bytes(), &l) == nil && l["event"] == kind {
			found = l
		}
	}
	require.NotNil(t, found, "no %s event in: %s", kind, log)
	require.Equal(t, level, found["level"], "%v", found)
	require.NotEmpty(t, found["msg"])
	for _, name := range attributes {
		require.Contains(t, found, name)
	}
	for name, value := range found {
		switch name {
		case "leader", "member":
			require.Regexp(t, `^[0-9a-f]+\(m[1-9]\)$`, value, "%s of %v", name, found)
		case "for", "after", "without", "silent", "stalled", "took":
			require.Regexp(t, `^[0-9.]+(m|µ|n)?s$`, value, "%s of %v", name, found)
		}
	}
	return found
}

// allEvents returns the events of all members that a member gathers, oldest first.
func allEvents(t *testing.T, at string) (all []status.Event) {
	t.Helper()
	for _, line := range strings.Split(ok(t, "status", "--events", "--json", "--endpoints", at), "\n") {
		var e status.Event
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		all = append(all, e)
	}
	return all
}

// counts returns the number of events of a kind that a member has.
func counts(all []status.Event, member, kind string) (n int) {
	for _, e := range all {
		if e.Member == member && e.Kind == kind {
			n++
		}
	}
	return n
}

// disks are the files that stall the disks of a trio while they are locked, by member.
type disks [4]*os.File

// startOnDisks starts the members, each on its own disk.
func (c *trio) startOnDisks() (d disks) {
	for i := 1; i <= 3; i++ {
		f, err := os.Create(filepath.Join(c.t.TempDir(), "disk"))
		require.NoError(c.t, err)
		c.t.Cleanup(func() { f.Close() })
		d[i], c.env = f, []string{diskLock + "=" + f.Name()}
		c.start(i)
	}
	for i := 1; i <= 3; i++ {
		c.healthy(i)
	}
	return d
}

func (d disks) stall(t *testing.T, i int) {
	t.Helper()
	require.NoError(t, unix.Flock(int(d[i].Fd()), unix.LOCK_EX))
}

func (d disks) resume(t *testing.T, i int) {
	t.Helper()
	require.NoError(t, unix.Flock(int(d[i].Fd()), unix.LOCK_UN))
}

// TestAStalledDiskIsAnEvent: the leader's disk is stalled. Its member logs that once, the others elect another leader,
// and the former leader logs the length of the stall when it steps down or learns of the other one.
func TestAStalledDiskIsAnEvent(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := unstarted(t)
	c.more = []string{"--log-format=json", "--election-timeout=500", "--heartbeat-interval=50"}
	d := c.startOnDisks()
	leader := c.leader()
	name, other := c.flags[leader].name, leader%3+1
	at := []string{"--endpoints", c.flags[other].client}
	d.stall(t, leader)
	c.put(other, "a", "b")
	sees(t, "slow-disk", "the disk of "+name+" is stalled: a write to the log takes more than", at...)
	sees(t, "leader-lost", "lost its leader "+name, at...)
	sees(t, "leads", "s without a leader", at...)
	d.resume(t, leader)
	sees(t, "disk-back", "the disk of "+name+" writes again, after", at...)
	var all []status.Event
	eventually(t, name+" logs the reason why it no longer leads", func(context.Context) bool {
		all = allEvents(t, c.flags[other].client)
		return slices.ContainsFunc(all, func(e status.Event) bool {
			return e.Member == name && strings.Contains(e.Text, " was stalled for ") &&
				(e.Kind == "stepped-down" || e.Kind == "leader-moved")
		})
	})
	require.Equal(t, 1, counts(all, name, "slow-disk"), "%v", all)
	require.Equal(t, 1, counts(all, name, "disk-back"), "%v", all)
	log := c.running[leader].stderr.String()
	logged(t, log, "slow-disk", "WARN", "for", "remedy")
	logged(t, log, "disk-back", "INFO", "after")
}

// TestADrainIsAnEvent: the drain, the change of the leader and the end of the drain are events, and none is a warning.
func TestADrainIsAnEvent(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := unstarted(t)
	c.more = []string{"--log-format=json"}
	c.start(1, 2, 3)
	for i := 1; i <= 3; i++ {
		c.healthy(i)
	}
	leader := c.leader()
	name := c.flags[leader].name
	at := []string{"--endpoints", c.flags[leader%3+1].client}
	ok(t, append([]string{"drain", name}, at...)...)
	sees(t, "drained", name+" is drained: it hands over what it leads, and leads nothing until that is undone", at...)
	sees(t, "leads", " leads in term 2", at...)
	ok(t, append([]string{"drain", name, "--undo"}, at...)...)
	sees(t, "undrained", name+" is not drained any more: it may lead again", at...)

	all := allEvents(t, at[1])
	from := slices.IndexFunc(all, func(e status.Event) bool { return e.Kind == "drained" })
	for _, e := range all[from:] {
		require.Equal(t, "info", e.Level, "%v", e)
		require.NotContains(t, e.Text, name+" lost its leader "+name)
	}
	log := c.running[leader].stderr.String()
	logged(t, log, "drained", "INFO")
	logged(t, log, "undrained", "INFO")
}

// TestRepairsAreEvents: a record of the log that is damaged, and a value in the database, are events when they are
// found and when they are repaired.
func TestRepairsAreEvents(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c, values := databaseOfThree(t, jsonLog, "--scrub-rate=67108864")
	at := []string{"--endpoints", strings.TrimPrefix(c.clients["m1"], "http://")}
	flipRecord(t, filepath.Join(c.dir, "m2", logDir), values["key-23"])
	sees(t, "damage", "damage on the disk of m2: ", at...)
	sees(t, "mended", "damage on the disk of m2 is repaired or no longer matters: places 1", at...)

	ok(t, "ctl", "--endpoints", strings.TrimPrefix(c.clients["m2"], "http://"), "snapshot", "save",
		filepath.Join(t.TempDir(), "db")) // earlier puts are in the file then
	flipValue(t, c.dir, "m2", values["key-31"])
	sees(t, "state-damaged", "the state of m2 is damaged, and it asks others for theirs: ", at...)
	sees(t, "alarm-raised", "the alarm CORRUPT is raised for m2. m2 serves nothing and is repaired", at...)
	sees(t, "state-replaced", "the damaged state of m2 was replaced in ", at...)
	sees(t, "alarm-ended", "the alarm CORRUPT for m2 has ended", at...)

	content, err := os.ReadFile(filepath.Join(c.dir, "m2.log"))
	require.NoError(t, err)
	log := string(content)
	logged(t, log, "damage", "ERROR", "err")
	logged(t, log, "mended", "INFO", "places")
	logged(t, log, "state-damaged", "ERROR", "err")
	logged(t, log, "state-replaced", "INFO", "took")
}

// flipRecord changes a bit of a value in the segments of a member's log.
func flipRecord(t *testing.T, dir, value string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "log", "*.wal"))
	require.NoError(t, err)
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		at := bytes.Index(data, []byte(value))
		if at < 0 {
			continue
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		require.NoError(t, err)
		defer f.Close()
		_, err = f.WriteAt([]byte{data[at] ^ 4}, int64(at))
		require.NoError(t, err)
		return
	}
	require.Fail(t, "the value is in no segment", "%v", files)
}

// TestTheFitterIsSeen: large values fill the leader's links. With fit=advise one event has the change that the fitter
// advises; with fit=on events have the start of the change, its effects and its end, once each.
func TestTheFitterIsSeen(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	for mode, seen := range map[string]map[string]string{
		"advise": {"fit": `^the fitter: advises craft .*commands/s become`},
		"on": {"fit": `^the fitter: changes to craft .*commands/s become`,
			"protocol": `^the protocol is craft in place of raft \(profile 2\)$`,
			"settings": `^the settings are profile 2: [^>]*placement=code \(was copy\)$`,
			"fitted":   `^the fitter changed the log to craft [^>\[]*: .*commands/s become`},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := upWith(t, jsonLog, dataDir(t), "--fit="+mode, "--net=bandwidth=20mbit")
			leader := c.leader()
			at := strings.TrimPrefix(c.clients[leader], "http://")
			c.largeValues(at)
			for kind, text := range seen {
				sees(t, kind, "", "--endpoints", at)
				all := allEvents(t, at)
				i := slices.IndexFunc(all, func(e status.Event) bool { return e.Kind == kind })
				require.Equal(t, "info", all[i].Level)
				require.Regexp(t, regexp.MustCompile(text), all[i].Text)
				require.Equal(t, 1, counts(all, all[i].Member, kind), "%v", all)
				log, err := os.ReadFile(filepath.Join(c.dir, all[i].Member+".log"))
				require.NoError(t, err)
				logged(t, string(log), kind, "INFO")
			}
		})
	}
}

// largeValues puts large values at a member until the test ends.
func (c *cluster) largeValues(at string) {
	ctx, cancel := context.WithCancel(c.t.Context())
	c.t.Cleanup(cancel)
	value := letters(64<<10, 1)
	for w := range 16 {
		client := c.largeClient(at)
		go func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, _ = client.Put(ctx, fmt.Sprintf("large-%d-%d", w, i%20), value)
			}
		}()
	}
}
