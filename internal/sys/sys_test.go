package sys

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestInterruptedCallsAreMadeAgain(t *testing.T) {
	calls := 0
	require.Equal(t, syscall.ENOSPC, Again(func() error {
		if calls++; calls < 4 {
			return &os.PathError{Op: "allocate", Err: syscall.EINTR}
		}
		return syscall.ENOSPC
	}))
	require.Equal(t, 4, calls)
	require.NoError(t, Again(func() error { return nil }))
}

func TestNoDescriptor(t *testing.T) {
	require.True(t, NoDescriptor(fmt.Errorf("open: %w", &os.PathError{Op: "open", Err: syscall.EMFILE})))
	require.True(t, NoDescriptor(errors.Join(nil, syscall.ENFILE)))
	require.False(t, NoDescriptor(syscall.ENOSPC))
	require.False(t, NoDescriptor(nil))
}

func TestDescriptors(t *testing.T) {
	n, ok := Descriptors()
	require.True(t, ok)
	require.Positive(t, n)
}

func TestSteady(t *testing.T) {
	before, at := Steady(), time.Now()
	for time.Since(at) < time.Millisecond {
		runtime.Gosched()
	}
	if passed := Steady() - before; passed < time.Millisecond/2 || passed > time.Minute {
		t.Errorf("%v passed in a millisecond", passed)
	}
}
