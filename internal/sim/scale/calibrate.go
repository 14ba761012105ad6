package scale

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// Calibrate measures the costs of the parts of a run on this machine: in about two seconds, and two more for each
// protocol with a hundred members. dir is a directory on the disk to measure; nothing is left in it. The machine
// should be idle.
func Calibrate(ctx context.Context, dir string, runs []Config) (Costs, error) {
	c := Costs{Factor: 1, Steps: map[string][]Steps{}}
	c.memory()
	c.Turn.Once = turnCost()
	if err := c.network(ctx); err != nil {
		return c, fmt.Errorf("scale: costs of the network: %w", err)
	}
	if err := c.storage(dir); err != nil {
		return c, fmt.Errorf("scale: costs of the disk: %w", err)
	}
	c.Wake = wakeCost(ctx)
	if err := c.protocols(ctx, runs); err != nil {
		return c, err
	}
	return c, ctx.Err()
}

const (
	small = 16       // bytes of a command
	many  = 256      // parts of a large item
	large = 64 << 10 // bytes of a large item
	times = 400      // measurements of a short operation
)

var session = protocol.Session{Member: 1, Incarnation: 1}

// sealed returns a batch with the given number of commands and bytes of each, with index 1.
func sealed(commands, bytes int, done intake.Done) *intake.Batch {
	b := intake.NewBatch(0, commands*(bytes+3), commands)
	for range commands {
		b.Add(make([]byte, bytes), done)
	}
	b.Seal(session, 1, 1)
	b.Entry.Seal(1, 1, make([]byte, protocol.HeadSize))
	return b
}

// memory measures the parts that need neither disk nor network.
func (c *Costs) memory() {
	one, keyed := submitCost(1, false), submitCost(1, true)
	c.Submit.Once, c.Submit.Each = submitted(one, submitCost(many, false))
	c.Keyed.Once, c.Keyed.Each = submitted(keyed, submitCost(many, true))

	payload := make([]byte, large)
	c.Digest.Byte = typical(times, nil, func() { protocol.Digest(payload) }) / large

	few := applyCost(1, many, false)
	_, c.Command.Each = through(1, applyCost(1, 1, false), many, few)
	c.Settle.Once, c.Settle.Each = through(1, max(0, applyCost(many, 1, true)-applyCost(many, 1, false))/many, many, max(0, applyCost(1, many, true)-few))
	c.messages()
}

// submitCost returns the cost of submitting a command to a member, in batches of the given number.
func submitCost(commands int, keyed bool) float64 {
	done, now := intake.Done(func(any, error) {}), func() time.Duration { return 0 }
	command := make([]byte, small)
	var mu sync.Mutex
	return typical(times, nil, func() {
		p := intake.Proposals{MaxBatch: 1 << 20, MaxCount: commands, MaxBytes: 1 << 40, Proposing: protocol.Proposing{Keys: keyed}}
		for key := range uint64(many) {
			mu.Lock()
			var err error
			if keyed {
				_, err = p.AddWith(now, command, &protocol.ProposeOptions{Keys: []uint64{key}}, done)
			} else {
				_, err = p.Add(now, command, done)
			}
			mu.Unlock()
			if err != nil {
				panic(err) // there is space
			}
		}
	}) / many
}

// submitted derives the costs per batch and per command from those of a single command and of one among many.
func submitted(alone, among float64) (once, each float64) {
	once = max(0, alone-among) * many / (many - 1)
	return once, max(0, alone-once)
}

// applyCost returns the cost of applying a commitment with the given number of entries and of commands in each, with
// two merged instances. own: this member proposed them.
func applyCost(entries, commands int, own bool) float64 {
	begin := order.Begin(2, true)
	applier := apply.NewApplier(nothing{}, member.Bootstrap(begin, nil), session, 0, nil)
	a := apply.NewApply(applier, begin, 1<<40, idleWorld{known: apply.NewApplied(applier)})
	done := intake.Done(func(any, error) {})
	var next [2]intake.CommittedEntries
	index, seq := protocol.Index(0), [2]uint64{1, 1}
	return typical(times/8, func() {
		for i := range next {
			next[i] = intake.CommittedEntries{Instance: protocol.InstanceID(i + 1)}
			for n := range entries {
				b := sealed(commands, small, done)
				b.Seal(session, seq[i], seq[i])
				b.Entry.Index, b.Entry.Term = index+protocol.Index(n)+1, 1
				seq[i] += uint64(commands)
				next[i].Entries = append(next[i].Entries, b.Entry)
				if own {
					next[i].Own = append(next[i].Own, b)
				}
			}
		}
		index += protocol.Index(entries)
	}, func() {
		for i := range next {
			if err := a.Do(&apply.ApplyItem{Commit: next[i]}); err != nil {
				panic(err) // our own entries
			}
		}
	}) / float64(len(next))
}

// idleWorld is the world of an apply.Apply on a member that only applies.
type idleWorld struct {
	apply.ApplyWorld
	known *apply.Applied
}

func (w idleWorld) Left(int, int64) {}

func (w idleWorld) Publish(a *apply.Applier) error {
	w.known.Note(a)
	return nil
}

// messages measures the cost of a message's byte at its decoding.
func (c *Costs) messages() {
	done := intake.Done(func(any, error) {})
	codec := registry.Find("raft").Core.Codec
	decode := func(bytes int) float64 {
		m := protocol.Message{Type: message.Append, Instance: 1, From: 1, To: 2, Term: 1, Part: &message.Part{Index: 1 << 20, LogTerm: 1, Round: 1 << 10}}
		m.Entries = []protocol.Entry{sealed(1, bytes, done).Entry}
		var f instance.Framer
		parts, err := f.Frame(&m)
		if err != nil {
			panic(err) // our own message
		}
		wire := slices.Concat(parts...)
		return typical(times, nil, func() {
			came := make([]byte, len(wire))
			copy(came, wire)
			if _, err := protocol.DecodeMessage(came, codec); err != nil {
				panic(err) // our own message
			}
		})
	}
	c.Unpack.Byte = max(0, decode(large)-decode(small)) / large
}

// turnCost returns the cost of an empty turn of a loop: the wakeup, the check of the queue, the clock, a timer.
func turnCost() float64 {
	var mu sync.Mutex
	wake, stop := make(chan struct{}, 1), make(chan struct{})
	ticker, timer := time.NewTicker(time.Hour), time.NewTimer(time.Hour)
	defer ticker.Stop()
	defer timer.Stop()
	return typical(times, nil, func() {
		for range many {
			mu.Lock()
			select {
			case wake <- struct{}{}:
			default:
			}
			mu.Unlock()
			timer.Reset(time.Hour)
			select {
			case <-wake:
			case <-timer.C:
			case <-ticker.C:
			case <-stop:
			}
			mu.Lock()
			_ = time.Now()
			mu.Unlock()
		}
	}) / many
}

// wakeCost returns the time until a sleeping goroutine runs on another core. If there is no other core, it is the
// time of a switch between goroutines.
func wakeCost(ctx context.Context) float64 {
	wake, ran := make(chan time.Time, 1), make(chan float64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for began := range wake {
			took := float64(time.Since(began))
			select {
			case ran <- took:
			case <-ctx.Done():
				return
			}
		}
	}()
	var all []float64
	for range times {
		idle := time.Now()
		for time.Since(idle) < 30*time.Microsecond { // by then the goroutine sleeps, and so does its core
		}
		wake <- time.Now()
		select {
		case took := <-ran:
			all = append(all, took)
		case <-ctx.Done():
		}
	}
	close(wake)
	<-done
	if len(all) == 0 {
		return 0
	}
	return steps(all)[10]
}

// storage measures the log on a real disk.
func (c *Costs) storage(dir string) error {
	dir, err := os.MkdirTemp(dir, "scale-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	logs := make([]*stored, 3)
	for i := range logs {
		if logs[i], err = newStored(filepath.Join(dir, fmt.Sprint(i))); err != nil {
			return err
		}
		defer func() { _ = logs[i].log.Close() }()
	}
	const syncs = 150
	one := logs[0]
	for _, l := range logs {
		l.syncs(10, 1, small) // the first syncs also make files longer
	}
	runtime.LockOSThread() // the log writes and syncs on it
	cpu := worked()
	c.Disk = one.syncs(syncs, 1, small)
	c.Sync.Once = float64(worked()-cpu) / syncs
	runtime.UnlockOSThread()
	c.Record.Once, c.Record.Each = 0, 0
	few, all, big := one.append(1, small), one.append(many, small), one.append(1, large)
	_, c.Record.Each = through(1, few, many, all)
	c.Record.Byte = max(0, big-few) / large
	c.DiskByte = max(0, steps(one.syncs(syncs/4, 4, large))[10]-steps(c.Disk)[10]) / (4 * large)
	c.Disk = steps(c.Disk)

	together := make([][]float64, len(logs))
	var wg sync.WaitGroup
	for i, l := range logs {
		wg.Go(func() { together[i] = l.syncs(syncs, 1, small) })
	}
	wg.Wait()
	for _, t := range together {
		c.DiskShared = append(c.DiskShared, t...)
	}
	c.DiskShared = steps(c.DiskShared)
	for _, l := range logs {
		if l.err != nil {
			return l.err
		}
	}
	return nil
}

// stored is a log on disk for measurements.
type stored struct {
	log   *wal.Log
	index uint64
	err   error // the first error
}

func newStored(dir string) (*stored, error) {
	l, err := wal.Open(wal.Options{Dir: dir, Identity: []byte("scale"), SegmentBytes: 64 << 20})
	return &stored{log: l}, err
}

func (s *stored) records(n, bytes int) []wal.Record {
	out := make([]wal.Record, n)
	for i := range out {
		s.index++
		out[i] = wal.Record{Instance: 1, Kind: wal.KindEntry, Index: s.index, Parts: [2][]byte{make([]byte, protocol.HeadSize), make([]byte, bytes)}}
	}
	return out
}

func (s *stored) note(err error) {
	if s.err == nil {
		s.err = err
	}
}

// syncs measures each write of records with its sync.
func (s *stored) syncs(times, records, bytes int) (took []float64) {
	for range times {
		r := s.records(records, bytes)
		began := time.Now()
		s.note(s.log.Append(r))
		s.note(s.log.Sync())
		took = append(took, float64(time.Since(began)))
	}
	return took
}

// append measures the time to put records into the buffer.
func (s *stored) append(records, bytes int) float64 {
	var r []wal.Record
	return typical(times/8, func() {
		s.note(s.log.Sync())
		r = s.records(records, bytes)
	}, func() { s.note(s.log.Append(r)) })
}
