package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The limit of a service, of the groups around it, and of a container count, in both versions of control groups.
func TestLimitsOfControlGroups(t *testing.T) {
	require.Equal(t, []string{
		"/sys/fs/cgroup/system.slice/braid.service/memory.max",
		"/sys/fs/cgroup/system.slice/memory.max",
		"/sys/fs/cgroup/memory.max",
	}, limitFiles("0::/system.slice/braid.service\n"))
	require.Equal(t, []string{"/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes"}, limitFiles("5:cpu,cpuacct:/docker\n4:memory:/docker\n"))
	require.Empty(t, limitFiles(""))
}
