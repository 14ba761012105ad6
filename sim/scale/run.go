package scale

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
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
	w := &world{cfg: cfg, costs: cfg.Costs.scaled(), rng: rand.New(rand.NewPCG(cfg.Seed, 1)), command: make([]byte, cfg.Payload)}
	switch {
	case cfg.Single:
	case cfg.Spread:
		w.leaders = protocol.LeadersSpread
	default:
		w.leaders = protocol.LeadersTogether
	}
	var members []protocol.Member
	for i := range cfg.Nodes {
		members = append(members, protocol.Member{ID: protocol.MemberID(i + 1)})
	}
	meta := member.Bootstrap(order.Begin(cfg.Instances, !cfg.Single), members)
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
	w.link()
	if err := w.elect(); err != nil {
		return nil, err
	}
	w.loads(all)
	w.meter = m
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

// leader is the member that should lead an instance. The first member leads the first instance.
func (w *world) leader(instance protocol.InstanceID) *node {
	voters := make([]protocol.MemberID, len(w.members))
	for i, m := range w.members {
		voters[i] = m.id
	}
	if id := w.leaders.Preferred(voters, int(instance-1), voters[0]); id != 0 {
		return w.members[id-1]
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

// elect has the leaders elected, before there is any load.
func (w *world) elect() error {
	for _, m := range w.members {
		for _, l := range m.loops {
			w.after(time.Duration(w.rng.Int64N(int64(tickEvery))), l.ticks)
		}
	}
	for i := range w.cfg.Instances {
		w.leader(protocol.InstanceID(i + 1)).loops[i].input(protocol.Stand{})
	}
	for until := w.now + electionTimeout; !w.led(); {
		if w.now >= until {
			return errors.Join(errors.New("scale: not every instance has its leader"), w.err)
		}
		w.run(w.now + tickEvery)
	}
	w.origin = w.now
	return nil
}

// led reports whether the right member leads each instance, and whether the others know.
func (w *world) led() bool {
	for _, m := range w.members {
		for _, l := range m.loops {
			if id, _ := l.inst.Leader(); id != w.leader(l.instance).id {
				return false
			}
		}
	}
	return true
}

func (w *world) simulate() {
	for _, m := range w.members {
		if m.load != nil {
			m.load.thread.wake()
		}
	}
	w.from = w.origin + w.cfg.Warmup
	w.to = w.from + w.cfg.Duration
	w.run(w.to)
}

// check verifies that nothing went wrong, the invariants of all instances and of what applies, and
// that the leaders have not changed.
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
	if !w.led() {
		return errors.New("scale: an instance changed its leader")
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
