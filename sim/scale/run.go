package scale

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

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
	w := &world{cfg: cfg, costs: cfg.Costs.scaled(), rng: rand.New(rand.NewPCG(cfg.Seed, 1)), meter: m}
	var config protocol.Config
	for i := range cfg.Nodes {
		config.Members = append(config.Members, protocol.Member{ID: protocol.MemberID(i + 1)})
	}
	config.Number()
	var all *machine
	if cfg.Shared {
		all = w.machine(cfg.Cores)
	}
	for i := range cfg.Nodes {
		cpu := all
		if cpu == nil {
			cpu = w.machine(cfg.Cores)
		}
		m, err := newMember(w, protocol.MemberID(i+1), cpu, config)
		if err != nil {
			return nil, err
		}
		w.members = append(w.members, m)
	}
	w.link()
	if err := w.elect(); err != nil {
		return nil, err
	}
	w.loads(all)
	return w, nil
}

func (w *world) link() {
	for _, from := range w.members {
		for _, to := range w.members {
			var links []*link
			for i := 0; i < w.cfg.Instances && from != to; i++ {
				links = append(links, newLink(from, to, protocol.InstanceID(i+1)))
			}
			from.links = append(from.links, links)
		}
	}
}

// leader is the member that should lead an instance.
func (w *world) leader(instance protocol.InstanceID) *node {
	if w.cfg.Spread {
		return w.members[int(instance-1)%len(w.members)]
	}
	return w.members[0]
}

// loads gives each member that leads a load, on a core of its own unless all share one machine.
func (w *world) loads(all *machine) {
	var leaders []*node
	for i := range w.cfg.Instances {
		if m := w.leader(protocol.InstanceID(i + 1)); !slices.Contains(leaders, m) {
			leaders = append(leaders, m)
		}
	}
	for _, m := range leaders {
		cpu := all
		if cpu == nil {
			cpu = w.machine(1)
		}
		n := len(leaders)
		m.load = newLoad(m, cpu, w.cfg.Rate/float64(n), (w.cfg.Inflight+n-1)/n)
	}
}

// elect has the leaders elected before time begins, when nothing costs anything yet.
func (w *world) elect() error {
	const most = 100 // rounds of messages that an election needs at most
	for i := range w.cfg.Instances {
		leader := w.leader(protocol.InstanceID(i + 1)).loops[i]
		now := 2 * electionTimeout
		for _, m := range w.members {
			m.loops[i].inst.Step(0, protocol.Tick{Random: w.rng.Uint64()}, &m.loops[i].out)
		}
		leader.inst.Step(now, protocol.Tick{Random: w.rng.Uint64()}, &leader.out)
		for round := 0; w.exchange(i, now); round++ {
			if round == most {
				return fmt.Errorf("scale: instance %d does not come to rest", i+1)
			}
		}
		if leader.leads = leader.inst.Core().Status().Role == protocol.Leader; !leader.leads {
			return fmt.Errorf("scale: instance %d has no leader", i+1)
		}
	}
	w.now = 2 * electionTimeout
	w.origin = w.now
	return nil
}

// exchange carries out at once what an instance wants on all members. It reports whether there was
// anything.
func (w *world) exchange(i int, now time.Duration) (more bool) {
	for _, m := range w.members {
		l := m.loops[i]
		for !l.out.Empty() || l.out.Seq != l.submits {
			more = true
			var none spend
			l.carryOut(&none)
			l.told, l.durable = l.submits, l.submits
			l.inst.Step(now, protocol.Persisted{Seq: l.submits}, &l.out)
		}
		l.jobs = l.jobs[:0]
		for _, f := range l.frames {
			to := w.members[f.msg.To-1].loops[i]
			to.inst.Step(now, f.msg, &to.out)
		}
		l.frames = l.frames[:0]
		for _, c := range l.commits {
			m.apply.order.Add(c.Instance, c.Entries)
		}
		l.commits = l.commits[:0]
	}
	return more
}

func (w *world) simulate() {
	for _, m := range w.members {
		for _, l := range m.loops {
			w.after(time.Duration(w.rng.Int64N(int64(tickEvery))), l.ticks)
		}
		if m.load != nil {
			m.load.thread.wake()
		}
	}
	w.from = w.origin + w.cfg.Warmup
	w.to = w.from + w.cfg.Duration
	w.run(w.to)
}

// check verifies the invariants of all instances and orders, and that the leaders have not changed.
func (w *world) check() error {
	for _, m := range w.members {
		for _, l := range m.loops {
			if err := l.inst.Check(); err != nil {
				return fmt.Errorf("scale: member %v: %w", m.id, err)
			}
			if leads := m == w.leader(l.instance); leads != l.leads {
				return fmt.Errorf("scale: instance %d changed its leader", l.instance)
			}
		}
		if err := m.apply.order.Check(); err != nil {
			return fmt.Errorf("scale: member %v: %w", m.id, err)
		}
	}
	return nil
}

// one is 1 in the time that counts, else 0.
func (w *world) one() int64 {
	if w.counts() {
		return 1
	}
	return 0
}

func (w *world) result() *Result {
	t, seconds := &w.tally, w.cfg.Duration.Seconds()
	per := func(n int64) float64 { return float64(n) / seconds }
	r := &Result{
		Throughput: per(t.commands), Commands: t.commands, Dropped: t.dropped,
		P50: t.quantile(0.5), P90: t.quantile(0.9), P99: t.quantile(0.99),
		Batches: per(t.batches), Skips: per(t.skips), Fsyncs: per(t.syncs), Messages: per(t.messages),
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

// uses lists what a member's threads use. It adds up the threads that send, and those that receive.
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
	for i := range m.links {
		for _, l := range m.links[i] {
			add("send", l.out.busy)
		}
	}
	for _, o := range m.w.members {
		if o == m {
			continue
		}
		for _, l := range o.links[m.id-1] {
			add("receive", l.in.busy)
		}
	}
	return out
}
