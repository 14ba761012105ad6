// Package ports finds free TCP ports, and the process that uses one.
//
// It reads the operating system's tables (on Linux /proc/net/tcp and the files that
// processes hold open) and imports nothing of braid. Read ports.go, then owner_linux.go.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"syscall"
)

// Process is a process that listens on a port. PID is 0 if it is not known.
type Process struct {
	PID  int
	Name string
}

// BusyError is a port that is taken. A retry is safe once its owner has ended.
type BusyError struct {
	Addr  string // host:port
	Owner Process
}

func (e *BusyError) Error() string {
	if e.Owner.PID == 0 {
		return fmt.Sprintf("%s is taken by a process that this user may not see", e.Addr)
	}
	return fmt.Sprintf("%s is taken by %s (process %d)", e.Addr, e.Owner.Name, e.Owner.PID)
}

// Check returns a [BusyError] if addr (host:port) cannot be listened on because it is taken.
func Check(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return Explain(err)
	}
	return l.Close()
}

// Explain turns an error of net.Listen about a taken port into a [BusyError] and returns other errors unchanged.
func Explain(err error) error {
	var op *net.OpError
	if !errors.Is(err, syscall.EADDRINUSE) || !errors.As(err, &op) || op.Addr == nil {
		return err
	}
	busy := &BusyError{Addr: op.Addr.String()}
	if _, port, splitErr := net.SplitHostPort(busy.Addr); splitErr == nil {
		if n, convErr := strconv.Atoi(port); convErr == nil {
			busy.Owner = Owner(n)
		}
	}
	return busy
}

const low, high = 10000, 32000 // of Free

// next counts the ports that Free has tried, from a start of this process's own.
var next = func() *atomic.Uint32 {
	n := &atomic.Uint32{}
	n.Store(rand.Uint32N(high - low))
	return n
}()

// Free returns n ports on which nothing listens on host. They are below the range that systems use for outgoing
// connections, so they stay free until they are asked for. Free itself returns a port a second time only when it has
// tried all others.
func Free(host string, n int) ([]int, error) {
	var found []int
	for range 100 * n {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(low+int(next.Add(1)%(high-low)))))
		if err != nil {
			continue
		}
		found = append(found, l.Addr().(*net.TCPAddr).Port)
		if err := l.Close(); err != nil {
			return nil, err
		}
		if len(found) == n {
			return found, nil
		}
	}
	return nil, fmt.Errorf("no %d free ports on %s between %d and %d", n, host, low, high)
}
