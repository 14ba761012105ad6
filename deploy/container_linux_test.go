package deploy

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
)

// engine returns the program that builds and runs images on this machine, and its arguments. runc works with each kind
// of control groups. Limits are set because some users may not raise them to an engine's default.
func engine(t *testing.T) (name string, build, run []string) {
	t.Helper()
	run = []string{"--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"}
	if _, err := try(t.Context(), "", "docker", "info"); err == nil {
		return "docker", nil, run
	}
	return "podman", []string{"--format", "docker"}, append(run, "--runtime", "runc")
}

// TestImage: the image is built from a release, and a member runs in it as its own user, with all files read-only
// except its data, which it keeps.
func TestImage(t *testing.T) {
	testsize.Only(t, testsize.Deploy)
	t.Parallel()
	dir, tag := release(t), fmt.Sprintf("braid-test:%d", os.Getpid())
	program, build, run := engine(t)
	build = append([]string{"build", "-f", "deploy/docker/Dockerfile", "-t", tag}, build...)
	do(t, dir, program, append(build, ".")...)
	t.Cleanup(func() { _, _ = try(context.Background(), "", program, "rmi", "-f", tag) })
	client, peer, web := free(t), free(t), free(t)
	id := strings.ReplaceAll(tag, ":", "-") // of the container, and of its volume
	for name, address := range map[string]string{"LISTEN_CLIENT": client, "ADVERTISE_CLIENT": client,
		"LISTEN_PEER": peer, "INITIAL_ADVERTISE_PEER": peer, "LISTEN_METRICS": web} {
		run = append(run, "-e", "ETCD_"+name+"_URLS=http://"+address)
	}
	run = append(run, "--detach", "--name", id, "--network=host", "--read-only", "--cap-drop=all",
		"-v", id+":/var/lib/braid", "-e", "ETCD_NAME=m1", "-e", "ETCDCTL_ENDPOINTS="+client, tag)
	t.Cleanup(func() { _, _ = try(context.Background(), "", program, "volume", "rm", id) })
	t.Cleanup(func() { _, _ = try(context.Background(), "", program, "rm", "-f", id) })
	for _, want := range []string{"", "k\nv"} {
		do(t, "", program, append([]string{"run"}, run...)...)
		eventually(t, "it is ready", func(ctx context.Context) bool { return answers(ctx, "http://"+web+"/readyz") })
		require.Equal(t, want, do(t, dir, "./braid", "ctl", "--endpoints", client, "get", "k"))
		do(t, dir, "./braid", "ctl", "--endpoints", client, "put", "k", "v")
		do(t, "", program, "exec", id, "braid", "ctl", "endpoint", "health") // as HEALTHCHECK does
		status, err := os.ReadFile("/proc/" + do(t, "", program, "inspect", "-f", "{{.State.Pid}}", id) + "/status")
		require.NoError(t, err)
		require.Contains(t, string(status), "Uid:\t65532\t65532\t65532\t65532")
		do(t, "", program, "stop", "-t", "30", id)
		require.Equal(t, "0", do(t, "", program, "inspect", "-f", "{{.State.ExitCode}}", id))
		do(t, "", program, "rm", id)
	}
	image := do(t, "", program, "inspect", tag)
	require.Regexp(t, `"Test": \[\s*"CMD",\s*"/usr/local/bin/braid",\s*"ctl",\s*"endpoint",\s*"health"\s*\]`, image)
	require.Contains(t, image, `"User": "65532:65532"`)
}
