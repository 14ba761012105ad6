// Package ports finds free TCP ports, and the process that uses one.
//
// It reads the operating system's tables (on Linux /proc/net/tcp and the files that
// processes hold open) and imports nothing of braid. Read ports.go, then listen.go, share_unix.go and owner_linux.go.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
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
	if !errors.Is(err, syscall.EADDRINUSE) || !errors.As(err, &op) || op.Addr == nil || op.Net == "unix" {
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

const (
	rangeLow  = 4000         // of Range
	rangeSize = 60           // ports that Range returns
	low, high = 10000, 32000 // of Free
	block     = 50           // ports that Free claims at once
)

// own are the ports of this process.
var own claims

// claims are ports that no other process gets from Free.
type claims struct {
	sync.Mutex
	blocks []net.PacketConn // stay claimed until the process ends
	ports  []int            // of these blocks, not tried yet
	next   int              // block to be claimed next
}

// Free returns n ports on which nothing listens on host. They are below the range that systems use for outgoing
// connections, so they stay free until they are asked for. While this process runs, Free returns them to no other
// process, and to this one a second time only when it has tried all others.
func Free(host string, n int) ([]int, error) {
	own.Lock()
	defer own.Unlock()
	var found []int
	for range 100 * n {
		port, ok := own.take()
		if !ok {
			break
		}
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		found = append(found, port)
		if err := l.Close(); err != nil {
			return nil, err
		}
		if len(found) == n {
			return found, nil
		}
	}
	return nil, fmt.Errorf("no %d free ports on %s between %d and %d", n, host, low, high)
}

// take returns the next port. It returns ports again when there is no other block.
func (c *claims) take() (port int, ok bool) {
	if len(c.ports) == 0 && !c.claim() {
		for _, b := range c.blocks {
			c.add(b)
		}
	}
	if len(c.ports) == 0 {
		return 0, false
	}
	port, c.ports = c.ports[0], c.ports[1:]
	return port, true
}

// claim claims one block more.
func (c *claims) claim() bool {
	const blocks = (high - low) / block
	if len(c.blocks) == 0 {
		c.next = rand.IntN(blocks)
	}
	for range blocks {
		first := low + c.next%blocks*block
		c.next++
		if conn, ok := claim(first); ok {
			c.blocks = append(c.blocks, conn)
			c.add(conn)
			return true
		}
	}
	return false
}

// claim claims the ports from first on: it binds the UDP port first. No other process can bind it, and the system
// releases it when this process ends, however it ends. TCP ports of the same numbers are not affected.
func claim(first int) (net.PacketConn, bool) {
	conn, err := net.ListenPacket("udp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(first)))
	return conn, err == nil
}

func (c *claims) add(claimed net.PacketConn) {
	first := claimed.LocalAddr().(*net.UDPAddr).Port
	for port := first; port < first+block; port++ {
		c.ports = append(c.ports, port)
	}
}

// Range returns the first of 60 ports in a row on which nothing listens on host. No process gets any of them from Range
// or Free until release is called or this process ends.
func Range(host string) (first int, release func() error, err error) {
	const ranges = (low - rangeLow) / rangeSize
	start := rand.IntN(ranges)
	for i := range ranges {
		first = rangeLow + (start+i)%ranges*rangeSize
		conn, ok := claim(first)
		if !ok {
			continue
		}
		if allFree(host, first, rangeSize) {
			return first, conn.Close, nil
		}
		if err := conn.Close(); err != nil {
			return 0, nil, err
		}
	}
	return 0, nil, fmt.Errorf("no %d free ports in a row on %s between %d and %d", rangeSize, host, rangeLow, low)
}

func allFree(host string, first, n int) bool {
	for port := first; port < first+n; port++ {
		if Check(net.JoinHostPort(host, strconv.Itoa(port))) != nil {
			return false
		}
	}
	return true
}
