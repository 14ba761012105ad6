package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/internal/testsize"
)

// earlier are the data directories of three members of version 1904652, for each protocol, with their flags. That
// version has no lineages, births and kinds of logs. One member was stopped and two were killed:
// testdata/earlier/make.sh makes the archives with that version's program.
var earlier = []earlierDirs{
	{"raft", nil, "niagara"},
	{"iss", nil, ""},
	{"craft", []string{"--code-k=2"}, "lcr"},
	{"niagara", []string{"--instances=2"}, "craft"},
	{"lcr", nil, "raft"},
	{"multi-paxos", nil, ""},
}

// other is another protocol of the same core, with which members restart once the log has a profile; "": there is none.
type earlierDirs struct {
	protocol string
	flags    []string
	other    string
}

// unpacked returns three members with these directories. None is started.
func (e *earlierDirs) unpacked(t *testing.T) *trio {
	t.Helper()
	c := unstarted(t)
	c.more = append([]string{"--protocol=" + e.protocol, "--snapshot-bytes=20000", "--large-value-bytes=4096"},
		e.flags...)
	unpack(t, filepath.Join("testdata", "earlier", e.protocol+".tar.gz"), filepath.Dir(c.flags[1].dir))
	return c
}

// TestDirectoriesOfAnEarlierVersionOpen: all keys are there, the log gets a lineage, every member stores it durably,
// and it stays when all members are killed and restarted.
func TestDirectoriesOfAnEarlierVersionOpen(t *testing.T) {
	t.Parallel()
	for _, e := range earlier[:testsize.Pick(testsize.Processes, 0, 2, len(earlier))] {
		t.Run(e.protocol, func(t *testing.T) {
			t.Parallel()
			c := e.unpacked(t)
			c.start(1, 2, 3)
			for i := 1; i <= 3; i++ {
				c.healthy(i)
				c.has(i, "last", e.protocol)
			}
			got, err := c.client(2).Get(t.Context(), "large")
			require.NoError(t, err)
			require.Len(t, got.Kvs, 1)
			require.Len(t, got.Kvs[0].Value, 20000)
			got, err = c.client(3).Get(t.Context(), "key-", clientv3.WithPrefix(), clientv3.WithCountOnly())
			require.NoError(t, err)
			require.EqualValues(t, 29, got.Count)
			c.put(1, "now", e.protocol)

			lineage := c.lineage(1)
			require.Equal(t, lineage, c.lineage(2))
			require.Equal(t, lineage, c.lineage(3))
			c.profiled(e.other)
			c.kill(1, 2, 3)
			c.start(1, 2, 3)
			for i := 1; i <= 3; i++ {
				c.healthy(i)
				c.has(i, "now", e.protocol)
				require.Equal(t, lineage, c.lineage(i))
			}
		})
	}
}

// TestDirectoriesOfAnEarlierVersionGrow: a log of one instance gets a profile once all members know profiles, and then
// other instances. Everything from before is there, also when all members are killed and restarted.
func TestDirectoriesOfAnEarlierVersionGrow(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 2}[:testsize.Pick(testsize.Processes, 0, 1, 2)] { // raft and craft
		e := earlier[at]
		t.Run(e.protocol, func(t *testing.T) {
			t.Parallel()
			c := e.unpacked(t)
			c.start(1, 2)
			c.healthy(1)
			grow := func(instances int) (stderr string, code int) {
				_, stderr, code = do(t, "", "reshape", "--endpoints", c.flags[1].client,
					"--instances="+strconv.Itoa(instances))
				return stderr, code
			}
			c.lineage(1) // the leader proposes what the log of an earlier version does not have
			for range 4 {
				stderr, code := grow(4)
				require.Equal(t, exitFailed, code, "the third member may be of the earlier version")
				require.Contains(t, stderr, "no profile")
			}
			c.start(3)
			for _, instances := range []int{4, 1, 3}[:testsize.Pick(testsize.Processes, 1, 1, 3)] {
				eventually(t, "the change", func(context.Context) bool { _, code := grow(instances); return code == 0 })
				c.put(2, "now", strconv.Itoa(instances))
				c.kill(1, 2, 3)
				c.start(1, 2, 3)
				for i := 1; i <= 3; i++ {
					c.healthy(i)
					c.has(i, "last", e.protocol)
					c.has(i, "now", strconv.Itoa(instances))
				}
			}
			got, err := c.client(3).Get(t.Context(), "key-", clientv3.WithPrefix(), clientv3.WithCountOnly())
			require.NoError(t, err)
			require.EqualValues(t, 29, got.Count)
			for i := 1; i <= 3; i++ {
				b, err := os.ReadFile(filepath.Join(c.flags[i].dir, logDir, "member.json"))
				require.NoError(t, err)
				require.Contains(t, string(b), `"format":7`, "the earlier version knows 5")
			}
		})
	}
}

// profiled waits until all members have a profile, and has them restart as another protocol.
func (c *trio) profiled(other string) {
	c.t.Helper()
	if other == "" {
		return
	}
	for i := 1; i <= 3; i++ {
		eventually(c.t, "a profile", func(context.Context) bool {
			all := status.Ask(c.t.Context(), status.Options{Endpoints: []string{c.flags[i].client}, Only: true,
				Timeout: time.Second})
			return len(all) == 1 && all[0].Profile > 0
		})
	}
	c.more[0] = "--protocol=" + other
	c.more = slices.DeleteFunc(c.more, func(flag string) bool {
		return strings.HasPrefix(flag, "--code-k") || strings.HasPrefix(flag, "--instances")
	})
}

// lineage is the one in a member's directory, once the member has applied it.
func (c *trio) lineage(i int) (lineage uint64) {
	c.t.Helper()
	eventually(c.t, "a lineage", func(context.Context) bool {
		var peers struct {
			Lineage uint64 `json:"lineage"`
			Own     bool   `json:"own"`
		}
		b, err := os.ReadFile(filepath.Join(c.flags[i].dir, logDir, "peers.json"))
		if err == nil {
			err = json.Unmarshal(b, &peers)
		}
		lineage = peers.Lineage
		return err == nil && lineage != 0 && peers.Own
	})
	return lineage
}

// unpack writes the files of an archive below a directory.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if strings.HasSuffix(h.Name, "/") {
			require.NoError(t, os.MkdirAll(name, 0o700))
			continue
		}
		out, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
		require.NoError(t, err)
		_, err = io.Copy(out, files)
		require.NoError(t, err)
		require.NoError(t, out.Close())
	}
}
