package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reader reads commands of a page, and replaces some of their words. etcdctl is braid ctl.
type reader struct {
	t     *testing.T
	words map[string]string
}

// fields are the arguments of a command of the page; ok is false if it is not one of braid or etcdctl.
func (r *reader) fields(line string) (args []string, ok bool) {
	args = words(line)
	for i := range args {
		if word, known := r.words[args[i]]; known {
			args[i] = word
		}
	}
	switch args[0] {
	case "etcdctl":
		args[0] = "ctl"
		return args, true
	case "braid":
		return args[1:], true
	}
	return args, false
}

// TestThePageFromEtcdIsFollowed runs each command of docs/using/from-etcd.md. A member of braid takes the place of
// etcd: test/kubernetes and bench/rivals restore snapshots of etcd itself.
func TestThePageFromEtcdIsFollowed(t *testing.T) {
	t.Parallel()
	old, dir := newServeFlags(t), t.TempDir()
	left := serving(t, old)
	for _, key := range []string{"a", "b", "a"} {
		ok(t, "ctl", "--endpoints", old.client, "put", key, "of etcd")
	}
	members := memberFlags(t, 3)
	r := &reader{t, map[string]string{"OLD:2379": old.client}}
	for i := range members {
		name := members[i].name + ".braid"
		members[i].dir = filepath.Join(dir, name)
		r.words[name] = members[i].dir
	}
	for _, file := range []string{"etcd.db", "braid.db"} {
		r.words[file] = filepath.Join(dir, file)
	}
	served := false
	for _, line := range pageLines(t, "../../docs/using/from-etcd.md") {
		args, known := r.fields(line)
		require.True(t, known, line)
		switch {
		case args[0] == "serve":
			served = true
			stopped(t, left)
			startRestored(t, args, members)
		case served && args[0] != "restore":
			args = append(args, "--endpoints", members[0].client)
			fallthrough
		default:
			ok(t, args...)
		}
	}
	require.True(t, served)
	require.Equal(t, "a\nof etcd", ok(t, "ctl", "--endpoints", members[2].client, "get", "a"))
	require.Contains(t, ok(t, "utl", "snapshot", "status", r.words["braid.db"], "-w", "fields"), `"Revision" : 4`)
}

// startRestored starts the members of a new cluster as the page starts the first one, and waits until all are ready.
func startRestored(t *testing.T, args []string, members []serveFlags) {
	t.Helper()
	require.Equal(t, []string{"serve", "--name", members[0].name, "--data-dir", members[0].dir, "…"}, args)
	for _, f := range members {
		begin(t, "", f.args("--initial-advertise-peer-urls", "http://"+f.peer, "--advertise-client-urls",
			"http://"+f.client, "--initial-cluster", initialCluster(members))...)
	}
	eventually(t, "all members have published their client URLs", func(context.Context) bool {
		stdout, _, code := do(t, "", "status", "--endpoints", members[0].client)
		return code == 0 && strings.Contains(stdout, members[1].client) && strings.Contains(stdout, members[2].client)
	})
}

// TestThePageOfSecurityIsFollowed: with its commands a cluster answers only users who log in.
func TestThePageOfSecurityIsFollowed(t *testing.T) {
	t.Parallel()
	f := newServeFlags(t)
	serving(t, f, "--bcrypt-cost=4")
	r := &reader{t, nil}
	for _, line := range pageLines(t, "../../docs/using/security.md") {
		args, known := r.fields(line)
		require.True(t, known, line)
		ok(t, append(args, "--endpoints", f.client, "--command-timeout=30s")...)
	}
	_, stderr, code := do(t, "", "ctl", "--endpoints", f.client, "get", "a")
	require.NotZero(t, code)
	require.Contains(t, stderr, "user name is empty")
	for _, user := range [][]string{{"ctl", "get", "a"}, {"status"}} {
		ok(t, append(user, "--endpoints", f.client, "--user", "root:SECRET")...)
	}
}
