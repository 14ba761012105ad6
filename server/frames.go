package server

import (
	"bufio"
	"encoding/binary"
	"net"
	"sync"
)

// meteredConn parses the frames of an HTTP/2 connection that gRPC reads: it has the calls of the connection and the
// messages in progress (RFC 9113, and gRPC's length-prefixed messages). Only one goroutine reads. It never reads
// beyond what gRPC asks for within a frame, so when gRPC begins a call, last is its stream.
type meteredConn struct {
	net.Conn
	in   *intake
	from *client
	r    *bufio.Reader
	skip int // bytes of the preface that are still to come

	head   [frameHeader]byte
	passed int  // bytes of head that gRPC has; frameHeader: all
	left   int  // bytes of the payload that gRPC does not have
	data   bool // it is a DATA frame
	ends   bool // it is the last one of its stream; of a CONTINUATION frame: its headers are
	pad    int  // bytes of padding at its end; -1: the first byte of the payload has it
	to     *call
	last   uint32 // the newest stream that has headers

	share // guarded by the budgets
	mu    sync.Mutex
	calls map[uint32]*call
	gone  bool // it is closed
}

const (
	frameHeader   = 9
	clientPreface = http2Preface + "\r\n\r\nSM\r\n\r\n"

	frameData, frameHeaders, frameContinuation = 0, 1, 9
	flagEnd, flagPadded                        = 1, 8
)

func (in *intake) meter(conn net.Conn) *meteredConn {
	m := &meteredConn{
		Conn: conn, in: in, r: bufio.NewReaderSize(conn, connBuffer), skip: len(clientPreface), passed: frameHeader,
		calls: map[uint32]*call{},
	}
	in.add(m, conn.RemoteAddr())
	return m
}

// Close implements net.Conn.
func (m *meteredConn) Close() error {
	m.closed()
	return m.Conn.Close()
}

// closed records that the connection is closed. The intake removes it with its last call.
func (m *meteredConn) closed() {
	m.mu.Lock()
	m.gone = true
	last := len(m.calls) == 0
	m.mu.Unlock()
	if last {
		m.in.drop(m)
	}
}

// meteredAddr is the address of a client and its connection.
type meteredAddr struct {
	net.Addr
	conn *meteredConn
}

// RemoteAddr implements net.Conn. gRPC gives the address to every call.
func (m *meteredConn) RemoteAddr() net.Addr { return &meteredAddr{m.Conn.RemoteAddr(), m} }

// Read implements net.Conn.
func (m *meteredConn) Read(p []byte) (int, error) {
	if m.skip > 0 {
		n, err := m.r.Read(p[:min(len(p), m.skip)])
		m.skip -= n
		return n, err
	}
	if m.passed == frameHeader && m.left == 0 {
		if err := m.next(); err != nil {
			return 0, err
		}
	}
	if m.passed < frameHeader {
		n := copy(p, m.head[m.passed:])
		m.passed += n
		return n, nil
	}
	n, err := m.r.Read(p[:min(len(p), m.left)])
	m.left -= n
	m.in.received.Add(int64(n))
	if m.data {
		m.feed(p[:n])
	}
	return n, err
}

// Write implements net.Conn.
func (m *meteredConn) Write(p []byte) (int, error) {
	n, err := m.Conn.Write(p)
	m.in.sent.Add(int64(n))
	return n, err
}

// next reads the header of the next frame.
func (m *meteredConn) next() error {
	head, err := m.r.Peek(frameHeader)
	if err != nil {
		return err // what arrived of it is read again
	}
	copy(m.head[:], head)
	m.r.Discard(frameHeader)
	m.passed = 0
	m.left = int(binary.BigEndian.Uint32(head) >> 8)
	kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])&(1<<31-1)
	m.data, m.pad, m.to = kind == frameData, 0, nil
	if kind != frameContinuation { // else it is as in its headers
		m.ends = flags&flagEnd != 0
	}
	switch kind {
	case frameHeaders:
		m.last = stream
	case frameData:
		if flags&flagPadded != 0 {
			m.pad = -1
		}
		m.mu.Lock()
		m.to = m.calls[stream]
		m.mu.Unlock()
		m.feed(nil)
	}
	return nil
}

// ahead returns the prefix of the first message of the newest stream, if it has been received already; else nil. Then
// the call does not wait for it.
func (m *meteredConn) ahead() []byte {
	if m.r == nil || m.left > 0 || m.r.Buffered() < frameHeader+prefixBytes {
		return nil
	}
	b, err := m.r.Peek(frameHeader + prefixBytes)
	if err != nil || b[3] != frameData || b[4]&flagPadded != 0 || binary.BigEndian.Uint32(b[5:])&(1<<31-1) != m.last ||
		binary.BigEndian.Uint32(b)>>8 < prefixBytes {
		return nil
	}
	return b[frameHeader:]
}

// whole reports whether everything that the newest stream's client sends has arrived: one small message, or none. Such
// a call needs no more memory than it has, and no wait.
func (m *meteredConn) whole() bool {
	if m.ends {
		return true
	}
	b := m.ahead()
	if b == nil {
		return false
	}
	head, err := m.r.Peek(frameHeader)
	size := binary.BigEndian.Uint32(b[1:])
	return err == nil && head[4]&flagEnd != 0 && b[0] == 0 && size <= freeMessage &&
		binary.BigEndian.Uint32(head)>>8 == prefixBytes+size && m.r.Buffered() >= frameHeader+prefixBytes+int(size)
}

// feed passes bytes of a DATA frame to its call.
func (m *meteredConn) feed(p []byte) {
	if m.pad < 0 && len(p) > 0 {
		m.pad, p = int(p[0]), p[1:]
	}
	if m.to == nil {
		return
	}
	if padding := max(0, m.pad-m.left); len(p) > padding {
		m.to.feed(p[:len(p)-padding])
	}
	if m.ends && m.left == 0 {
		m.to.closed()
	}
}

// all returns the calls in progress.
func (m *meteredConn) all() []*call {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*call, 0, len(m.calls))
	for _, c := range m.calls {
		out = append(out, c)
	}
	return out
}
