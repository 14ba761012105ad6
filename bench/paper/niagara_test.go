package paper

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol/setting"
)

func TestFlow(t *testing.T) {
	const rate, first = 20_000, 700
	p, q := &instant{seen: map[uint64]int{}}, &instant{seen: map[uint64]int{}}
	f := startFlow(Work{Rate: rate, For: time.Second}, []proposer{p, q}, first)
	for f.answered() < 1000 {
		if time.Since(f.began) > 30*time.Second {
			t.Fatal("nothing flows")
		}
		<-time.After(time.Millisecond) // represents concurrent work
	}
	took := time.Since(f.began)
	if err := f.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	ran := time.Since(f.began)
	if sent := f.next.Load(); float64(sent) > rate*ran.Seconds()+2 || f.answered() != int64(sent) {
		t.Errorf("%d sent and %d answered in %v at %d/s", sent, f.answered(), ran, rate)
	}
	for n := range f.next.Load() {
		if p.seen[first+n]+q.seen[first+n] != 1 {
			t.Fatalf("command %d was sent %d times", first+n, p.seen[first+n]+q.seen[first+n])
		}
	}
	if len(p.seen) == 0 || len(q.seen) == 0 {
		t.Errorf("%d commands at one member, %d at the other", len(p.seen), len(q.seen))
	}
	if l := all(f.within(0, took)); len(l) == 0 || !slices.IsSorted(l) || l[0] < 0 {
		t.Errorf("%d latencies", len(l))
	}
}

// end stops the flow and waits for all answers.
func (f *flow) end(ctx context.Context) error {
	f.stop()
	_, err := f.wait(ctx)
	return err
}

// Commands that become due while too many are in progress are dropped and never sent.
func TestFlowDrops(t *testing.T) {
	p := &stuck{}
	f := startFlow(Work{Rate: 1e6, For: time.Second, Inflight: 50}, []proposer{p}, 0)
	for f.next.Load() < 50 {
		if time.Since(f.began) > 30*time.Second {
			t.Fatal("nothing flows")
		}
		<-time.After(time.Millisecond)
	}
	<-time.After(20 * time.Millisecond) // in which 20,000 more are due
	if n := f.next.Load(); n != 50 {
		t.Errorf("%d sent with room for 50", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.end(ctx); !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "50 commands are not answered") {
		t.Errorf("error %v", err)
	}

	lost := errors.New("lost")
	f = startFlow(Work{Rate: 1e5, For: time.Second}, []proposer{&instant{seen: map[uint64]int{}, fail: lost}}, 0)
	for f.failure.Load() == nil && time.Since(f.began) < 30*time.Second {
		<-time.After(time.Millisecond)
	}
	if err := f.end(t.Context()); !errors.Is(err, lost) {
		t.Errorf("error %v", err)
	}
}

// stuck answers nothing.
type stuck struct{}

func (*stuck) ProposeWithAsync([]byte, []byte, braid.ProposeOptions, func(any, error)) error {
	return nil
}

// Every kind of work of the experiments on niagara, on a real cluster with two network cards.
func TestRealNiagara(t *testing.T) {
	t.Parallel()
	target := openReal(t, Setup{Protocol: "niagara", Values: setting.MustParse("instances=4", "leaders=spread"), Cards: 2,
		Net: "egress=400mbit", Keys: 16, Heartbeat: 100 * time.Millisecond})
	f := runReal(t, target, Work{Rate: 5000, For: 300 * time.Millisecond})
	// Late commands of a busy machine are answered in that time too.
	if f[Throughput] < 500 || f[Throughput] > 10_000 || f[P50] <= 0 || f[P90] < f[P50] || f[CPU] <= 0 {
		t.Errorf("a flow: %+v", f)
	}
	f = runReal(t, target, Work{For: 300 * time.Millisecond, Readers: 6, Payload: 2000})
	if f[Reads] <= 0 || f[ReadP50] <= 0 || f[ReadP90] < f[ReadP50] || f[Throughput] != 0 {
		t.Errorf("reads: %+v", f)
	}
	f = runReal(t, target, Work{For: 600 * time.Millisecond, Readers: 6, Payload: 2000, WriteEvery: 4})
	if f[Reads] <= f[Throughput] || f[Throughput] <= 0 || f[P50] <= 0 {
		t.Errorf("reads beside writes: %+v", f)
	}
	f = runReal(t, target, Work{For: 300 * time.Millisecond, Clients: 6, Payload: 2000})
	if f[Throughput] <= 0 || f[EgressAll] < 2*2000*0.9 || f[Egress] <= 0 || f[Egress] > f[EgressAll] {
		t.Errorf("writes: %+v", f)
	}
	f = runReal(t, target, Work{Requests: 20, Clients: 1})
	if f[P50] <= 0 || f[P90] < f[P50] {
		t.Errorf("a lone client: %+v", f)
	}
	if err := target.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReaders(t *testing.T) {
	value := func(context.Context, []byte) ([]byte, error) { return make([]byte, 9), nil }
	short := func(context.Context, []byte) ([]byte, error) { return make([]byte, 8), nil }
	refused := func(context.Context, []byte) ([]byte, error) { return nil, errors.New("refused") }
	lost := &instant{seen: map[uint64]int{}, fail: errors.New("lost")}
	for _, c := range []struct {
		ask  ask
		to   proposer
		want string
	}{{value, &instant{seen: map[uint64]int{}}, ""}, {short, lost, "a value of 8 bytes"}, {refused, lost, "refused"},
		{value, lost, "lost"}} {
		r := (&braidTarget{sent: 70, members: []*member{{}, {}}}).startReaders(Work{Payload: 9, WriteEvery: 3}, nil)
		r.wg.Go(func() { r.run(t.Context(), 1, c.to, c.ask) })
		for r.failure.Load() == nil && r.next.Load() < 40 && time.Since(r.began) < 30*time.Second {
			runtime.Gosched()
		}
		err := r.end(t.Context())
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			continue
		}
		reads, writes := len(r.reads.within(0, time.Hour)), len(r.writes.within(0, time.Hour))
		if err != nil || writes != int(r.next.Load()) || reads < 2*writes-1 || reads > 2*writes+2 {
			t.Errorf("%d reads, %d of %d writes, error %v", reads, writes, r.next.Load(), err)
		}
		for n, times := range c.to.(*instant).seen {
			if n < 70 || n >= 70+r.next.Load() || times != 1 {
				t.Errorf("command %d was sent %d times", n, times)
			}
		}
	}
}

// The values of strong reads are part of a member's snapshots.
func TestStoreInSnapshots(t *testing.T) {
	m := newMachine(0)
	m.store.values = make([][]byte, 4)
	command := append([]byte{6, 0, 0, 0, 0, 0, 0, 0}, "value"...)
	if err := m.Apply([]braid.Command{{Data: command}, {Data: []byte{2, 0, 0, 0, 0, 0, 0, 0}}}); err != nil {
		t.Fatal(err)
	}
	command[8] = 'x' // the store has a copy
	var b bytes.Buffer
	s, err := m.Snapshot()
	if err == nil {
		err = errors.Join(s.WriteTo(t.Context(), &b), s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	other := newMachine(0)
	if err := other.Restore(&b); err != nil {
		t.Fatal(err)
	}
	if v := other.store.get(2); !bytes.HasSuffix(v, []byte("value")) || other.applied != 2 {
		t.Errorf("value %q after %d commands", v, other.applied)
	}
	if err := other.store.restore(bufio.NewReader(io.LimitReader(&b, 0))); err == nil {
		t.Error("no values were restored without an error")
	}
}

func TestSetupsOfNiagara(t *testing.T) {
	for _, c := range []struct {
		setup Setup
		want  braid.Protocol
		net   string
	}{
		{networkSetup(seriesNiagara, 4, writeCard), braid.Named("niagara", "instances=4", "leaders=together"),
			"egress=250mbit,nics=4"},
		{networkSetup(seriesNiagara, 4, readCard), braid.Named("niagara", "instances=4", "leaders=spread"),
			"egress=10mbit,nics=4"},
		{networkSetup(seriesRaft, 4, readCard), braid.Named("raft"), "egress=10mbit,nics=4"},
		{braidedSetup(seriesBraided), braid.Named("niagara", "instances=5", "leaders=spread", "placement=code"), braidedCard},
		{braidedSetup(seriesThirds), braid.Named("niagara", "instances=5", "leaders=spread", "placement=code", "code-k=3"),
			braidedCard},
	} {
		if o, err := c.setup.options(); err != nil || o.Protocol != c.want || o.Experiment.Net != c.net {
			t.Errorf("%+v, %v", o, err)
		}
	}
}
