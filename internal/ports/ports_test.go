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

// TestAPortIsShared by those who all ask for that.
func TestAPortIsShared(t *testing.T) {
	one, err := Listen("tcp", "127.0.0.1:0", true)
	require.NoError(t, err)
	defer one.Close()
	two, err := Listen("tcp", one.Addr().String(), true)
	require.NoError(t, err)
	require.NoError(t, two.Close())
	_, err = Listen("tcp", one.Addr().String(), false)
	var busy *BusyError
	require.ErrorAs(t, err, &busy)
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

// Two processes never get the same ports, even if neither listens on its own yet.
func TestPortsOfAnotherProcessAreNotFree(t *testing.T) {
	var other claims
	defer func() {
		for _, b := range other.blocks {
			require.NoError(t, b.Close())
		}
	}()
	theirs := map[int]bool{}
	for range 2 * block {
		port, ok := other.take()
		require.True(t, ok)
		require.False(t, theirs[port])
		theirs[port] = true
	}
	own.Lock()
	own.ports, own.next = nil, other.next-2 // the blocks of the other process are tried next
	own.Unlock()
	ours, err := Free("127.0.0.1", 2*block)
	require.NoError(t, err)
	for _, port := range ours {
		require.False(t, theirs[port], "port %d has two owners", port)
	}
}

func TestRangesAreApart(t *testing.T) {
	first, release, err := Range("127.0.0.1")
	require.NoError(t, err)
	_, ok := claim(first)
	require.False(t, ok, "another process gets the same range")
	next, releaseNext, err := Range("127.0.0.1")
	require.NoError(t, err)
	require.GreaterOrEqual(t, max(first-next, next-first), rangeSize)
	require.NoError(t, releaseNext())
	require.NoError(t, release())
	conn, ok := claim(first)
	require.True(t, ok, "a range is free again")
	require.NoError(t, conn.Close())
}
