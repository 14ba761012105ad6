package ports

import (
	"errors"
	"net"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckNamesTheOwner(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()

	err = Check(l.Addr().String())
	var busy *BusyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, l.Addr().String(), busy.Addr)
	if runtime.GOOS == "linux" {
		require.Equal(t, os.Getpid(), busy.Owner.PID)
		require.Contains(t, err.Error(), "ports.test")
	}
}

func TestCheckOfAFreePort(t *testing.T) {
	free, err := Free("127.0.0.1", 3)
	require.NoError(t, err)
	require.Len(t, free, 3)
	more, err := Free("127.0.0.1", 3)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, port := range append(more, free...) {
		require.False(t, seen[port], "port %d was given twice", port)
		seen[port] = true
	}
	for _, port := range free {
		require.NoError(t, Check((&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}).String()))
	}
}

func TestExplainLeavesOtherErrorsAlone(t *testing.T) {
	other := errors.New("another error")
	require.Equal(t, other, Explain(other))
}
