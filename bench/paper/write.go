package paper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
)

// Run implements [Target].
func (t *braidTarget) Run(ctx context.Context, w Work) (Sample, error) {
	s, err := t.run(ctx, w)
	t.broken = t.broken || err != nil
	return s, err
}

func (t *braidTarget) run(ctx context.Context, w Work) (Sample, error) {
	switch {
	case w.Day != nil:
		return t.day(ctx, w)
	case w.Readers > 0:
		return t.readStrongly(ctx, w)
	case w.Faults != nil: // at a rate, too
		return t.faults(ctx, w)
	case w.For > 0 && w.Rate > 0:
		return t.flow(ctx, w)
	case w.For > 0:
		return t.window(ctx, w)
	case w.Reads > 0:
		return t.readAnew(ctx, w)
	}
	s, _, err := t.write(ctx, w)
	return s, err
}

// written is the last body of a run: the leader, the body's name and its bytes.
type written struct {
	leader *member
	ref    braid.BodyRef
	body   []byte
}

// write makes exactly this many requests, and also returns the body of the last one.
func (t *braidTarget) write(ctx context.Context, w Work) (Sample, *written, error) {
	leader, err := t.awaitLeader(ctx)
	if err != nil {
		return nil, nil, err
	}
	b := newBurst(w, t.proposers(leader, w.At), t.sent)
	t.sent += uint64(w.Requests)
	t.applied += uint64(w.Requests)
	for _, m := range t.members {
		m.machine.ringAt(t.applied)
	}
	before, err := t.read(ctx, leader)
	if err != nil {
		return nil, nil, err
	}
	commits := watchCommits(leader.node)
	err = b.run(ctx)
	if err != nil {
		commits.stop()
		return nil, nil, err
	}
	last, err := t.awaitBells(ctx)
	if err != nil {
		commits.stop()
		return nil, nil, err
	}
	after, err := t.read(ctx, leader)
	if err != nil {
		commits.stop()
		return nil, nil, err
	}
	s := sampleOf(b, last, &before, &after)
	s[Replicated] = ms(commits.stop().Sub(b.began))
	if !t.sameLeaders(&before, &after) {
		return nil, nil, errLeaderChanged
	}
	return s, &written{leader, b.last, b.bodies.of(w.Requests - 1)}, nil
}

// errLeaderChanged is the error of a run that an election disturbed. The cluster is sound, and the run can be
// repeated.
var errLeaderChanged = errors.New("the leader changed during the run")

// sameLeaders reports whether all instances have the same leaders, without an election in between. If leaders move to
// the members that use them, or are only a hint, a change is no disturbance.
func (t *braidTarget) sameLeaders(before, after *reading) bool {
	return t.setup.roams() || t.setup.byKey() || slices.EqualFunc(before.leader.Instances, after.leader.Instances,
		func(b, a protocol.Status) bool {
			return a.Instance == b.Instance && a.Leader == b.Leader && a.Term == b.Term
		})
}

// reading is a reading of all counters at one time.
type reading struct {
	leader    braid.Status
	followers []braid.Status // of the running ones
	uses      uses
	cpu       time.Duration // of all members and the load
	syncTime  time.Duration // of all members' syncs together
	syncs     uint64        // how often they did
}

// egress is the number of bytes that all members have sent.
func (r *reading) egress() (bytes uint64) {
	bytes = uint64(r.leader.Links.EgressBytes)
	for i := range r.followers {
		bytes += uint64(r.followers[i].Links.EgressBytes)
	}
	return bytes
}

// messages is the number of messages that all members have sent.
func (r *reading) messages() (n int64) {
	for _, s := range append(r.followers, r.leader) {
		for i := range s.Links.Peers {
			n += s.Links.Peers[i].FramesOut
		}
	}
	return n
}

func (t *braidTarget) read(ctx context.Context, leader *member) (r reading, err error) {
	r.leader = leader.node.Status()
	r.uses, err = t.uses(ctx, leader, false)
	r.cpu = r.uses.cpu()
	r.syncTime, r.syncs = r.leader.Log.SyncTime, r.leader.Log.Syncs
	for _, m := range t.members {
		if m != leader && m.node != nil {
			s := m.node.Status()
			r.followers = append(r.followers, s)
			r.syncTime += s.Log.SyncTime
			r.syncs += s.Log.Syncs
		}
	}
	return r, err
}

// sampleOf computes the figures from two readings.
func sampleOf(b *burst, last time.Time, before, after *reading) Sample {
	latencies := b.latencies()
	n, runtime := float64(b.work.Requests), last.Sub(b.began)
	s := Sample{
		Runtime: ms(runtime), Throughput: n / runtime.Seconds(),
		P50: ms(quantile(latencies, 0.5)), P90: ms(quantile(latencies, 0.9)), P99: ms(quantile(latencies, 0.99)),
		Syncs:      float64(after.leader.Log.Syncs - before.leader.Log.Syncs),
		SyncTime:   ms(after.leader.Log.SyncTime - before.leader.Log.SyncTime),
		MemberSync: ms(after.syncTime-before.syncTime) / float64(len(after.followers)+1),
		CPU:        float64((after.cpu - before.cpu).Microseconds()) / n,
		Egress:     float64(after.leader.Links.EgressBytes-before.leader.Links.EgressBytes) / n,
		EgressAll:  float64(after.egress()-before.egress()) / n,
		Messages:   float64(after.messages()-before.messages()) / n,
	}
	if entries := after.leader.Commits - before.leader.Commits; entries > 0 {
		s[PerEntry] = n / float64(entries)
	}
	if s[Syncs] > 0 {
		s[SyncMean] = s[SyncTime] / s[Syncs]
	}
	if bytes := b.work.bytes(); bytes > 0 {
		s[Bandwidth] = n * float64(bytes) / (1 << 20) / runtime.Seconds()
		s.addDisks(n, before, after)
	}
	return s
}

// addDisks adds the bytes that followers wrote and kept. The kept bytes are unknown if they released some in between,
// as after a snapshot.
func (s Sample) addDisks(requests float64, before, after *reading) {
	var kept, written float64
	steady := len(after.followers) > 0
	for i := range after.followers {
		f, was := &after.followers[i], &before.followers[i]
		kept += float64(f.Bodies.LiveBytes - was.Bodies.LiveBytes)
		written += float64(f.Log.Bytes - was.Log.Bytes)
		steady = steady && f.Snapshots == was.Snapshots
	}
	followers := max(1, float64(len(after.followers)))
	s[Written] = written / requests / followers
	if steady && kept > 0 {
		s[Kept] = kept / requests / followers
	}
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// awaitBells returns the time when the last member had applied everything.
func (t *braidTarget) awaitBells(ctx context.Context) (last time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	for i, m := range t.members {
		select {
		case at := <-m.machine.bell:
			if at.After(last) {
				last = at
			}
		case <-ctx.Done():
			return last, fmt.Errorf("member %d has not applied everything: %w", i+1, ctx.Err())
		}
	}
	return last, nil
}

// commitWatch records the time of the last increase of a member's committed entries.
type commitWatch struct {
	quit chan struct{}
	done sync.WaitGroup
	last time.Time
}

// watchInterval is the resolution of a commitWatch.
const watchInterval = 250 * time.Microsecond

func watchCommits(n node) *commitWatch {
	w := &commitWatch{quit: make(chan struct{}), last: time.Now()}
	s := n.Status()
	seen := s.Commits
	w.done.Go(func() {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		for ended := false; !ended; {
			select {
			case <-tick.C:
			case <-w.quit:
				ended = true
			}
			if s := n.Status(); s.Commits != seen {
				seen, w.last = s.Commits, time.Now()
			}
		}
	})
	return w
}

// stop ends the watch and returns the time of the last increase.
func (w *commitWatch) stop() time.Time {
	close(w.quit)
	w.done.Wait()
	return w.last
}
