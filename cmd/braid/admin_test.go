package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
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
}
