package limit

import (
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// inFlight bounds the batches that are sent and not answered. Only a full one is sent while another is in flight: a
	// small one grows meanwhile, because each command of a small batch costs more CPU.
	inFlight = 2
	// ackBytes is the size of an acknowledgement: the number of the last batch on disk.
	ackBytes = 8
)

// leader is the first member. Its run, and a receiveAcks for each follower, run concurrently.
type leader struct {
	*member
	followers []net.Conn
	wake      chan struct{} // run has something to do

	mu       sync.Mutex
	proposed []*batch // not sent yet; commands are added to the last one
	sent     []*batch // sent and not answered
	onDisk   []uint64 // by member: its last batch that is on its disk
	last     uint64   // the last batch that was sent
	commit   uint64   // the last one that a majority has on disk
	applied  uint64
	applying bool  // a goroutine applies what is committed
	err      error // if not nil, no more commands are accepted
}

// propose adds a command to the next batch.
func (l *leader) propose(command []byte, answer func(any, error)) error {
	l.mu.Lock()
	if l.err != nil {
		defer l.mu.Unlock()
		return l.err
	}
	n := len(l.proposed)
	begin := n == 0 || len(l.proposed[n-1].frame) >= MaxBatch
	if begin {
		l.proposed = append(l.proposed, newBatch())
	}
	l.proposed[len(l.proposed)-1].add(command, answer)
	l.mu.Unlock()
	if begin { // the first batch, or one after a full one
		l.notify()
	}
	return nil
}

func (l *leader) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run sends batches and writes them to the leader's own log, until quit is closed. Every interval it sends a batch
// without commands, so that the followers learn the last committed one.
func (l *leader) run(quit <-chan struct{}, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-l.wake:
		case <-tick.C:
			if err := l.send(l.heartbeat()); err != nil {
				return err
			}
		case <-quit:
			return nil
		}
		for b := l.next(); b != nil; b = l.next() {
			if err := l.replicate(b); err != nil {
				return err
			}
		}
	}
}

// heartbeat returns a batch without commands, with the number of the last committed one.
func (l *leader) heartbeat() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := newBatch()
	b.seal(l.last, l.commit, 1)
	return b
}

// next returns the next batch to send; nil: there is none, or enough are in flight.
func (l *leader) next() *batch {
	// Clients that were just answered add their next commands first: one batch for all of them.
	runtime.Gosched()
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.sent)
	if len(l.proposed) == 0 || n >= inFlight || n > 0 && len(l.proposed[0].frame) < MaxBatch {
		return nil
	}
	b := l.proposed[0]
	l.proposed = slices.Delete(l.proposed, 0, 1)
	l.last++
	b.seal(l.last, l.commit, 3) // send, replicate and acknowledge
	l.sent = append(l.sent, b)
	return b
}

// replicate sends a batch to all followers, and then makes it durable here.
func (l *leader) replicate(b *batch) error {
	if err := l.send(b); err != nil {
		return err
	}
	if err := l.log.write(b); err != nil {
		return err
	}
	if err := l.log.sync(); err != nil {
		return err
	}
	l.acknowledge(0, b.seq)
	b.release()
	return nil
}

func (l *leader) send(b *batch) error {
	defer b.release()
	for _, conn := range l.followers {
		if err := l.transmit(conn, b.frame); err != nil {
			return err
		}
	}
	return nil
}

// receiveAcks reads the acknowledgements of a follower until its connection ends.
func (l *leader) receiveAcks(follower int, conn net.Conn) error {
	var ack [ackBytes]byte
	for {
		if _, err := io.ReadFull(conn, ack[:]); err != nil {
			return err
		}
		l.acknowledge(follower, binary.LittleEndian.Uint64(ack[:]))
	}
}

// acknowledge records the last batch that is on a member's disk. Then it applies and answers all committed batches,
// unless another goroutine does so.
func (l *leader) acknowledge(member int, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onDisk[member] = seq
	sorted := slices.Sorted(slices.Values(l.onDisk))
	l.commit = sorted[len(sorted)-(len(sorted)/2+1)] // a majority has this one
	if l.applying {
		return
	}
	l.applying = true
	for l.applied < l.commit {
		b := l.sent[0]
		l.mu.Unlock()
		l.applyBatch(b)
		b.answer(nil)
		b.release()
		l.mu.Lock()
		l.applied++
		l.sent = slices.Delete(l.sent, 0, 1)
		l.notify()
	}
	l.applying = false
}
