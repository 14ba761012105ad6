package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
)

// laterFormat is the format of the version of braid that does not exist yet.
const laterFormat = format.First + 1

// laterVersion is the version of files of the log in that format.
const laterVersion uint32 = 2

// laterBuild builds the version of braid that knows one more format.
func laterBuild(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "braid-later")
	build := exec.Command("go", "build", "-o", program, "-ldflags",
		fmt.Sprintf("-X github.com/braidlog/braid/internal/format.newest=%d", laterFormat), ".")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// formats returns the format that a member writes, and the newest one that it knows.
func (d *day) formats(i int) (written, known int) {
	d.t.Helper()
	all := status.Ask(d.t.Context(), status.Options{Endpoints: []string{d.flags[i].client}, Only: true,
		Timeout: 5 * time.Second})
	require.Len(d.t, all, 1)
	return all[0].Format, all[0].KnownFormat
}

// recorded returns the format of a member's directory.
func (d *day) recorded(i int) int {
	d.t.Helper()
	var id struct{ Format int }
	b, err := os.ReadFile(filepath.Join(d.flags[i].dir, logDir, "member.json"))
	require.NoError(d.t, err)
	require.NoError(d.t, json.Unmarshal(b, &id))
	return id.Format
}

// segments returns the versions of the segments of a member's log.
func (d *day) segments(i int) (versions []uint32) {
	d.t.Helper()
	require.NoError(d.t, wal.Inspect(vfs.OS, filepath.Join(d.flags[i].dir, logDir, "log"),
		func(s wal.SegmentInfo) error {
			versions = append(versions, s.Version)
			return nil
		}, func(wal.RecordInfo) error { return nil }))
	return versions
}

// TestUpgradeToALaterFormat: members are exchanged one after the other for those of a version with another format of
// log and frames, under load. Until the last one they write the former format, and each can go back. From then on they
// write the later one, and the former version refuses their directories, and is refused as a new member.
func TestUpgradeToALaterFormat(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	later := laterBuild(t)
	d := newDay(t, 3, 4, "--snapshot-bytes=4000000")
	upgrade := func(i int, program string, known int) {
		t.Helper()
		d.restart(i, program)
		_, is := d.formats(i)
		require.Equal(t, known, is)
	}
	d.step("m1 is upgraded", false, func() { upgrade(0, later, laterFormat) })
	d.step("m2 is upgraded", false, func() { upgrade(1, later, laterFormat) })
	d.step("m2 goes back", false, func() { upgrade(1, os.Args[0], format.First) })
	for i := range 3 {
		written, _ := d.formats(i)
		require.Equal(t, format.First, written, "m3 does not know another one")
		require.LessOrEqual(t, d.recorded(i), format.First)
	}
	d.step("m2 is upgraded again", false, func() { upgrade(1, later, laterFormat) })
	d.step("m3 is upgraded", false, func() { upgrade(2, later, laterFormat) })
	d.step("all write the later format", false, func() {
		for i := range 3 {
			eventually(t, d.flags[i].name+" writes the later format", func(context.Context) bool {
				written, _ := d.formats(i)
				return written == laterFormat && d.recorded(i) == laterFormat
			})
		}
	})
	d.step("the log has files of the later format", false, func() {
		client, value := d.client(), strings.Repeat("x", 900<<10)
		for i := range 3 {
			eventually(t, d.flags[i].name+" begins a file of the later format", func(ctx context.Context) bool {
				_, err := client.Put(ctx, "large", value)
				return err == nil && slices.Contains(d.segments(i), laterVersion)
			})
		}
	})
	d.step("m1 restarts", false, func() { upgrade(0, later, laterFormat) })

	d.stop(2)
	was := d.members[2]
	d.start(2, &dayMember{program: os.Args[0], args: was.args})
	code, stderr := d.members[2].exit()
	require.Equal(t, exitFailed, code, stderr)
	require.Contains(t, stderr, fmt.Sprintf("was written in format %d by a later version of braid, and this program "+
		"knows formats up to %d: start that version again", laterFormat, format.First))
	d.start(2, was)
	d.ready(2)

	env := printed(ok(t, "ctl", "--endpoints", d.endpoints(), "member", "add", d.flags[3].name, "--peer-urls",
		"http://"+d.flags[3].peer))
	d.start(3, &dayMember{program: os.Args[0], env: env})
	eventually(t, "the former version reports why it cannot join", func(context.Context) bool {
		return strings.Contains(d.members[3].stderr.String(),
			fmt.Sprintf("the log has format %d, this member knows formats up to %d", laterFormat, format.First))
	})
	d.step("m4 joins with the later version", true, func() {
		d.members[3].stop()
		d.start(3, &dayMember{program: later, env: env})
		d.ready(3)
		d.voters()
	})
	d.ends()
}
