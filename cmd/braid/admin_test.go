package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// TestNoAnswerInTime: a change without an answer may have been made. The error says so, and that it may be repeated.
func TestNoAnswerInTime(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections, and answers nothing
	require.NoError(t, err)
	defer silent.Close()
	for command, args := range map[string]string{
		"tune": "lease-reads=true", "reshape": "--instances=2", "zones": "m1=a", "switch": "iss",
	} {
		_, stderr, code := call(command, args, "--endpoints="+silent.Addr().String(), "--timeout=50ms")
		require.Equal(t, exitFailed, code)
		require.Equal(t, "braid "+command+": no answer within 50ms: a change may have been made, or be made later; "+
			"it may be repeated\n", stderr)
	}
	_, stderr, code := call("advise", "--endpoints="+silent.Addr().String(), "--timeout=50ms")
	require.Equal(t, exitFailed, code)
	require.Equal(t, "braid advise: no answer within 50ms\n", stderr)
}

// TestAChangeAsksTheNextMember: a member that is down, is silent or has no leader does not end a change.
func TestAChangeAsksTheNextMember(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections, and answers nothing
	require.NoError(t, err)
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	down := closed.Addr().String()
	require.NoError(t, closed.Close())
	alone := startSwitchable(t, map[string]any{"PlanSwitch": rpctypes.ErrGRPCNoLeader}).endpoint
	late := startSwitchable(t, map[string]any{"PlanSwitch": toISS, "Switch": rpctypes.ErrGRPCTimeout}).endpoint
	serves := startSwitchable(t, map[string]any{"PlanSwitch": toISS, "Switch": isISS}).endpoint
	refuses := startSwitchable(t, map[string]any{
		"PlanSwitch": grpcstatus.Error(codes.FailedPrecondition, "braid: switch: no")}).endpoint
	toDo := "braid switch: to do: tune lanes=false\nbraid switch: to do: seal the log, and begin iss under profile 4\n"
	began := time.Now()
	_, stderr, _ := call("switch", "iss", "--endpoints="+down+","+down, "--user=root:r")
	require.Contains(t, stderr, "connection refused")
	require.Less(t, time.Since(began), 2*time.Second)
	for _, c := range []struct {
		endpoints      []string
		stdout, stderr string
	}{
		{[]string{down, silent.Addr().String(), alone, late, serves}, "the protocol is iss, profile 4\n", toDo},
		{[]string{down, refuses, serves}, "", "braid switch: no\n"},
		{[]string{down, alone}, "", "braid switch: etcdserver: no leader\n"},
	} {
		stdout, stderr, _ := call("switch", "iss", "--endpoints="+strings.Join(c.endpoints, ","))
		require.Equal(t, c.stdout, stdout)
		require.Equal(t, c.stderr, stderr)
	}
}
