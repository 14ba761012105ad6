package paper

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid"
)

// keyRequest begins the request of a strong read of a key, whose number follows.
const keyRequest = 'k'

func requestKey(key uint64) []byte { return binary.LittleEndian.AppendUint64([]byte{keyRequest}, key) }

// readStrongly runs readers for a time, with occasional writes. A reader's program is another member's: the values
// come over the cards of the member that it asks, as they would to a client.
func (t *braidTarget) readStrongly(ctx context.Context, w Work) (Sample, error) {
	leader, err := t.awaitLeader(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.fill(ctx, w); err != nil {
		return nil, err
	}
	r := t.startReaders(w, t.proposers(leader, w.At))
	measured, err := t.watchReads(ctx, r, leader)
	rerr := r.end(ctx)
	t.sent += r.next.Load()
	t.applied += r.next.Load() // unless there is an error
	if err = errors.Join(err, rerr); err != nil {
		return nil, err
	}
	return measured(), t.converge(ctx)
}

// fill writes every key once.
func (t *braidTarget) fill(ctx context.Context, w Work) error {
	if t.filled || t.setup.Keys == 0 {
		return nil
	}
	_, _, err := t.write(ctx, Work{Requests: t.setup.Keys, Payload: w.Payload})
	t.filled = err == nil
	return err
}

// watchReads reads the counters at both ends of the measured time. The sample is available when the readers have
// ended.
func (t *braidTarget) watchReads(ctx context.Context, r *readers, leader *member) (func() Sample, error) {
	if err := sleepUntil(ctx, r.began.Add(settleTime)); err != nil {
		return nil, err
	}
	from := time.Since(r.began)
	before, err := t.read(ctx, leader)
	if err != nil {
		return nil, err
	}
	if err := sleepUntil(ctx, r.began.Add(from+r.work.For)); err != nil {
		return nil, err
	}
	to := time.Since(r.began)
	after, err := t.read(ctx, leader)
	if err != nil {
		return nil, err
	}
	if !t.sameLeaders(&before, &after) {
		return nil, errLeaderChanged
	}
	return func() Sample {
		reads, writes := all(r.reads.within(from, to)), all(r.writes.within(from, to))
		seconds := (to - from).Seconds()
		s := Sample{Reads: float64(len(reads)) / seconds, Throughput: float64(len(writes)) / seconds}
		if n := float64(len(reads) + len(writes)); n > 0 {
			s[ReadP50], s[ReadP90] = ms(quantile(reads, 0.5)), ms(quantile(reads, 0.9))
			s[CPU] = float64((after.cpu - before.cpu).Microseconds()) / n
		}
		if len(writes) > 0 {
			s.addLatencies(writes)
		}
		return s
	}, nil
}

// readers are clients that read one key after the other until they are stopped, and write as often as the work
// demands.
type readers struct {
	work    Work
	keys    int
	first   uint64 // number of the first command
	began   time.Time
	next    atomic.Uint64 // commands sent
	quit    chan struct{}
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	failure atomic.Pointer[error]
	reads   answers
	writes  answers
}

// ask sends a request to a member.
type ask func(ctx context.Context, request []byte) ([]byte, error)

func (t *braidTarget) startReaders(w Work, to []proposer) *readers {
	ctx, cancel := context.WithCancel(context.Background())
	r := &readers{work: w, keys: max(1, t.setup.Keys), first: t.sent, began: time.Now(), quit: make(chan struct{}),
		cancel: cancel}
	n := len(t.members)
	for i := range w.Readers {
		at := t.members[i%n]
		from := t.members[(i+1+i/n%max(1, n-1))%n]
		r.wg.Go(func() {
			r.run(ctx, i, to[i%len(to)], func(ctx context.Context, request []byte) ([]byte, error) {
				return from.node.Ask(ctx, at.options.Self, request)
			})
		})
	}
	return r
}

func (r *readers) run(ctx context.Context, number int, to proposer, ask ask) {
	random := rand.New(rand.NewPCG(1, uint64(number)))
	var reads, writes []answered
	defer func() { r.reads.add(reads...); r.writes.add(writes...) }()
	command := make([]byte, max(8, r.work.Payload))
	for i := number; ; i++ { // so that not all of them write at once
		select {
		case <-r.quit:
			return
		default:
		}
		began := time.Since(r.began)
		write := r.work.WriteEvery > 0 && i%r.work.WriteEvery == 0
		var err error
		if write {
			err = r.write(ctx, command, to)
		} else {
			err = r.read(ctx, requestKey(uint64(random.IntN(r.keys))), ask)
		}
		now := time.Since(r.began)
		switch {
		case err != nil:
			r.failure.CompareAndSwap(nil, &err)
			return
		case write:
			writes = append(writes, answered{at: now, took: now - began})
		default:
			reads = append(reads, answered{at: now, took: now - began})
		}
	}
}

func (r *readers) write(ctx context.Context, command []byte, to proposer) error {
	binary.LittleEndian.PutUint64(command, r.first+r.next.Add(1)-1)
	answer := make(chan error, 1)
	if err := to.ProposeWithAsync(command, nil, braid.ProposeOptions{}, func(_ any, err error) {
		answer <- err
	}); err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *readers) read(ctx context.Context, request []byte, ask ask) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	value, err := ask(ctx, request)
	if err == nil && len(value) < r.work.Payload {
		err = fmt.Errorf("a value of %d bytes", len(value))
	}
	return err
}

// end stops the readers after the answers to their reads.
func (r *readers) end(ctx context.Context) error {
	close(r.quit)
	unhook := context.AfterFunc(ctx, r.cancel)
	defer unhook()
	defer r.cancel()
	r.wg.Wait()
	if err := r.failure.Load(); err != nil {
		return fmt.Errorf("a reader failed: %w", *err)
	}
	return nil
}

// storing is a snapshot of a machine with its store.
type storing struct {
	braid.Snapshot
	values [][]byte
}

// WriteTo implements [braid.Snapshot].
func (s *storing) WriteTo(ctx context.Context, w io.Writer) error {
	if err := gob.NewEncoder(w).Encode(s.values); err != nil {
		return err
	}
	return s.Snapshot.WriteTo(ctx, w)
}

// copied returns all values.
func (s *store) copied() [][]byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	values := make([][]byte, len(s.values))
	for i, v := range s.values {
		values[i] = slices.Clone(v)
	}
	return values
}

// restore reads the values from a snapshot, and nothing after it.
func (s *store) restore(r *bufio.Reader) error {
	var values [][]byte
	if err := gob.NewDecoder(r).Decode(&values); err != nil {
		return fmt.Errorf("values of a snapshot: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values = values
	return nil
}

// store is a map with numbers as keys: a command writes its bytes to the key of its number. It represents the
// key-value service that the paper measures.
type store struct {
	mu     sync.RWMutex
	values [][]byte
}

// put keeps the bytes of a command. A command that is only a number marks the end of a run and writes nothing.
func (s *store) put(command []byte) {
	if len(s.values) == 0 || len(command) <= 8 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &s.values[binary.LittleEndian.Uint64(command)%uint64(len(s.values))]
	*v = append((*v)[:0], command...)
}

func (s *store) get(key uint64) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.values[key%uint64(cmp.Or(len(s.values), 1))])
}
