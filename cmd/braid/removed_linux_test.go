package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/braidlog/braid/internal/launch"
)

// TestARemovedMemberEnds: it sends its clients to others at once, ends by itself later, logs the reason, and does not
// run again when the launcher restarts it.
func TestARemovedMemberEnds(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t), "--restart")
	client := c.client(c.clients["m3"])
	put(t, client, "a")
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	watch, err := pb.NewWatchClient(client.ActiveConnection()).Watch(ctx)
	require.NoError(t, err)
	require.NoError(t,
		watch.Send(&pb.WatchRequest{
			RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte("a")}}}))
	created, err := watch.Recv()
	require.NoError(t, err)
	require.True(t, created.Created)
	lease, err := client.Grant(t.Context(), 60)
	require.NoError(t, err)
	alive, err := pb.NewLeaseClient(client.ActiveConnection()).LeaseKeepAlive(ctx)
	require.NoError(t, err)
	require.NoError(t, alive.Send(&pb.LeaseKeepAliveRequest{ID: int64(lease.ID)}))
	_, err = alive.Recv()
	require.NoError(t, err)
	status, err := client.Status(t.Context(), c.clients["m3"])
	require.NoError(t, err)

	pid := c.pids["m3"]
	again := commandOf(t, pid)
	ok(t, "ctl", "--endpoints", c.clients["m1"], "member", "remove", fmt.Sprintf("%x", status.Header.MemberId))
	removed := time.Now()
	_, err = watch.Recv()
	require.Equal(t, codes.Unavailable, grpcstatus.Code(err), "the watch is open and silent: %v", err)
	require.Less(t, time.Since(removed), electionTimeout/2, "clients wait until the member ends")
	_, err = alive.Recv()
	require.Equal(t, codes.Unavailable, grpcstatus.Code(err), "the stream of renewals is open and silent: %v", err)
	died := c.next(launch.Died)
	require.Equal(t, "m3", died.Member)
	require.Contains(t, died.How, fmt.Sprintf("exit code %d", exitExpelled))
	require.True(t, gone(pid))
	log, err := os.ReadFile(filepath.Join(c.dir, "m3.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "was removed from the cluster")

	// With its data directory it does not start again.
	_, stderr, code := do(t, "", again...)
	require.Equal(t, exitExpelled, code, stderr)
	require.Contains(t, stderr, "was removed from the cluster")
	put(t, c.client(c.clients["m1"]), "b")
}

// commandOf is the command line with which a process was started, without the program.
func commandOf(t *testing.T, pid int) []string {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	require.NoError(t, err)
	return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")[1:]
}

func put(t *testing.T, client *clientv3.Client, key string) {
	t.Helper()
	_, err := client.Put(t.Context(), key, "x")
	require.NoError(t, err)
}
