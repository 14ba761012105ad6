package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// etcdLink sends messages to one other member, each as its length and the marshalled message. All queued messages go
// into one write.
type etcdLink struct {
	m     *etcdMember
	addr  string
	mu    sync.Mutex
	queue []*raftpb.Message
	wake  chan struct{}
}

func newEtcdLink(m *etcdMember, addr string) *etcdLink {
	return &etcdLink{m: m, addr: addr, wake: make(chan struct{}, 1)}
}

func (l *etcdLink) send(msg *raftpb.Message) {
	l.mu.Lock()
	l.queue = append(l.queue, msg)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *etcdLink) loop() {
	conn, err := net.DialTimeout("tcp", l.addr, 5*time.Second)
	if err != nil {
		return // the listener is gone: the cluster is closing
	}
	defer func() { _ = conn.Close() }()
	var batch []*raftpb.Message
	var buf []byte
	for {
		select {
		case <-l.wake:
		case <-l.m.quit:
			return
		}
		l.mu.Lock()
		batch, l.queue = l.queue, batch[:0]
		l.mu.Unlock()
		buf = buf[:0]
		for _, msg := range batch {
			if buf, err = appendFrame(buf, msg); err != nil {
				panic("marshalling a message: " + err.Error())
			}
		}
		clear(batch)
		n, err := conn.Write(buf)
		l.m.egress.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// appendFrame appends a message with its length before it.
func appendFrame(buf []byte, msg *raftpb.Message) ([]byte, error) {
	begin := len(buf)
	buf, err := proto.MarshalOptions{}.MarshalAppend(append(buf, 0, 0, 0, 0), msg)
	if err == nil {
		binary.LittleEndian.PutUint32(buf[begin:], uint32(len(buf)-begin-4))
	}
	return buf, err
}

// acceptLinks reads from the other members until the listener is closed.
func (m *etcdMember) acceptLinks() {
	for {
		conn, err := m.accept.Accept()
		if err != nil {
			return
		}
		m.stopped.Go(func() { m.read(conn) })
		m.stopped.Go(func() { <-m.quit; _ = conn.Close() })
	}
}

func (m *etcdMember) read(conn net.Conn) {
	r := bufio.NewReaderSize(conn, 256<<10)
	var head [4]byte
	var body []byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		n := int(binary.LittleEndian.Uint32(head[:]))
		if cap(body) < n {
			body = make([]byte, n)
		}
		if _, err := io.ReadFull(r, body[:n]); err != nil {
			return
		}
		msg := new(raftpb.Message)
		if err := proto.Unmarshal(body[:n], msg); err != nil {
			return
		}
		m.receive(msg)
	}
}
