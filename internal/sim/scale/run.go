package scale

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// Run simulates a cluster under load. The result depends only on cfg.
func Run(cfg Config) (*Result, error) {
	w, err := newWorld(cfg, nil)
	if err != nil {
		return nil, err
	}
	w.simulate()
	if err := w.check(); err != nil {
		return nil, err
	}
	return w.result(), nil
}

func newWorld(cfg Config, m *meter) (*world, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &world{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 1)), command: make([]byte, cfg.Payload)}
	w.costs, w.steps = cfg.Costs.scaled(&cfg)
	w.choose()
	var members []protocol.Member
	for i := range cfg.Nodes {
		members = append(members, protocol.Member{ID: protocol.MemberID(i + 1)})
	}
	meta := member.Bootstrap(w.begin, members)
	var all *machine
	if cfg.Shared {
		all = w.machine(cfg.Cores)
	}
	for i := range cfg.Nodes {
		cpu := all
		if cpu == nil {
			cpu = w.machine(cfg.Cores)
		}
		m, err := newMember(w, protocol.MemberID(i+1), cpu, &meta)
		if err != nil {
			return nil, err
		}
		w.members = append(w.members, m)
	}
	if err := w.elect(); err != nil {
		return nil, err
	}
	w.loads(all)
	w.meter = m
	return w, nil
}

// leader returns the preferred leader of an instance. The first member leads the first instance, unless the protocol
// elects another one.
func (w *world) leader(instance protocol.InstanceID) *node {
	voters := make([]protocol.MemberID, len(w.members))
	for i, m := range w.members {
		voters[i] = m.id
	}
	if id := w.leaders.Preferred(voters, int(instance-1), voters[0]); id != 0 {
		return w.members[id-1]
	}
	return w.members[w.elected]
}

// loads creates a load for each member that takes commands, on a core of its own unless all share one machine.
func (w *world) loads(all *machine) {
	loaded := w.members
	if !w.cfg.Everywhere {
		loaded = w.leading()
	}
	for i, m := range loaded {
		cpu := all
		if cpu == nil {
			cpu = w.machine(1)
		}
		m.load = newLoad(m, cpu, w.cfg.Rate, w.cfg.Inflight, i, len(loaded))
	}
}

// elect waits for the elections of leaders, before there is any load.
func (w *world) elect() error {
	for _, m := range w.members {
		for _, l := range m.loops {
			w.after(time.Duration(w.rng.Int64N(int64(tickEvery))), l.ticks)
		}
	}
	for i := range w.cfg.Instances {
		w.leader(protocol.InstanceID(i + 1)).loops[i].input(protocol.Stand{})
	}
	for began := w.now; w.now < began+2*heartbeat || !w.settled(); {
		if w.now >= began+4*electionTimeout {
			return errors.Join(errors.New("scale: not every instance has its leader"), w.err)
		}
		w.run(w.now + tickEvery)
	}
	w.origin = w.now
	return nil
}

// settled reports whether every instance has its leader. Without a preferred one, the leader depends on the protocol.
func (w *world) settled() bool {
	if id, _ := w.members[0].loops[0].inst.Leader(); id != 0 {
		w.elected = int(id) - 1
	}
	return w.led()
}

// led reports whether the right member leads each instance, and whether the others know. If no member leads alone it
// suffices that each knows the others.
func (w *world) led() bool {
	for _, m := range w.members {
		for _, l := range m.loops {
			if id, _ := l.inst.Leader(); id == 0 || !w.anybody() && id != w.leader(l.instance).id {
				return false
			}
		}
	}
	return true
}

// An instance may have any leader if many members lead at once, or all propose.
func (w *world) anybody() bool {
	return w.protocol.Core.Judged.ManyLead || w.protocol.Core.Judged.ByKey
}

func (w *world) simulate() {
	w.start()
	if most := w.cfg.Commands; most > 0 {
		w.runSteps(w.from, func() bool { return w.came >= most })
		w.from = w.now
		w.to = w.from + w.cfg.Duration
		w.runSteps(w.to, func() bool { return w.tally.commands >= most })
		w.to = w.now
		return
	}
	w.run(w.to)
}

// commandsStep is the interval at which the number of completed commands is checked.
const commandsStep = time.Millisecond

func (w *world) runSteps(until time.Duration, enough func() bool) {
	for w.now < until && !enough() {
		w.run(min(until, w.now+commandsStep))
	}
}

// start begins the load.
func (w *world) start() {
	for _, m := range w.members {
		if m.load != nil {
			m.load.thread.wake()
		}
	}
	w.from = w.origin + w.cfg.Warmup
	w.to = w.from + w.cfg.Duration
}

// check verifies that there was no error, the invariants of all instances and appliers, and that the leaders have not
// changed.
func (w *world) check() error {
	if w.err != nil {
		return fmt.Errorf("scale: %w", w.err)
	}
	for _, m := range w.members {
		for _, l := range m.loops {
			if err := l.inst.Check(); err != nil {
				return fmt.Errorf("scale: member %v: %w", m.id, err)
			}
		}
		if err := m.apply.steps.Check(); err != nil {
			return fmt.Errorf("scale: member %v: %w", m.id, err)
		}
	}
	if !w.protocol.Moves() && !w.led() {
		return errors.New("scale: an instance changed its leader")
	}
	return nil
}

// one returns 1 in the measured time, otherwise 0.
func (w *world) one() int64 {
	if w.counts() {
		return 1
	}
	return 0
}

func (w *world) result() *Result {
	t, seconds := &w.tally, (w.to - w.from).Seconds()
	per := func(n int64) float64 { return float64(n) / seconds }
	r := &Result{
		Throughput: per(t.commands), Commands: t.commands, Dropped: t.dropped,
		P50: t.quantile(0.5), P90: t.quantile(0.9), P99: t.quantile(0.99),
		Batches: per(t.batches), Skips: per(t.skips), Fsyncs: per(t.syncs), Messages: per(t.messages), Bytes: per(t.bytes),
	}
	first := w.leader(1)
	for _, c := range first.egress {
		r.Egress += c.sent / seconds
	}
	var cpu time.Duration
	for _, m := range w.machines {
		r.Cores = append(r.Cores, m.busy.Seconds()/seconds)
		cpu += m.busy
	}
	if t.commands > 0 {
		r.CPU = cpu / time.Duration(t.commands)
	}
	r.Threads = first.uses(seconds)
	return r
}

// uses lists the CPU use of a member's threads. It adds up the senders, and the receivers.
func (m *node) uses(seconds float64) (out []Use) {
	add := func(name string, busy time.Duration) {
		if n := len(out); n > 0 && out[n-1].Thread == name {
			out[n-1].Cores += busy.Seconds() / seconds
			return
		}
		out = append(out, Use{name, busy.Seconds() / seconds})
	}
	if m.load != nil {
		add("load", m.load.thread.busy)
	}
	for _, l := range m.loops {
		add(l.thread.name, l.thread.busy)
	}
	add(m.disk.thread.name, m.disk.thread.busy)
	add(m.apply.thread.name, m.apply.thread.busy)
	for _, l := range m.links {
		if l != nil {
			add("send", l.out.busy)
		}
	}
	for _, o := range m.w.members {
		for i := range m.ids {
			if l := o.links[o.linkTo(m.id, m.ids[i])]; l != nil {
				add("receive", l.in.busy)
			}
		}
	}
	return out
}
