package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The promises of docs/leases.md, on members that are a lease clock and a place in a log each:
// they lag, stand still, and become the primary lessor at any time; commands come late, in
// another order, or never.

const (
	modelTTL       = 10
	modelStep      = 100 * time.Millisecond
	renewalTimeout = 7 * time.Second // of a renewal
)

// leaseFault is a wrong variant of a rule, which the model must find.
type leaseFault uint8

const (
	faultNone         leaseFault = iota
	faultAnswerAtOnce            // a renewal does not wait until checkpoints are taken back
	faultUnnumbered              // checkpoints take effect in any order
	faultFreshAlways             // how long the confirmation took does not count
	faultUnguarded               // what an earlier primary decided takes effect
	faultBarrierless             // a renewal is not confirmed
)

type leaseCommand struct {
	kind          byte // 'c'laim, 'e'nd, 's'horten
	member        int
	guard, number uint64
	left          int64
	arrives       time.Time // at the log
}

// orderedState is what the log says.
type orderedState struct {
	claim, number uint64
	member        int
	remaining     int64
	ended         bool
}

// apply applies a command and reports whether it took effect.
func (s *orderedState) apply(position uint64, c *leaseCommand, fault leaseFault) bool {
	switch {
	case c.kind == 'c':
		s.claim, s.number, s.member = position, 0, c.member
		return true
	case c.guard != s.claim && fault != faultUnguarded:
		return false
	case c.kind == 'e':
		s.ended = true
		return true
	case c.number <= s.number && fault != faultUnnumbered:
		return false
	}
	s.number, s.remaining = max(s.number, c.number), c.left
	return true
}

type leaseMember struct {
	clock   leaseClock
	state   orderedState
	applied int
	stands  time.Time // until then it does nothing
	slow    time.Time // until then it applies nothing
	looks   time.Time // when it looks what is due

	renewals []*leaseRenewal
}

type leaseRenewal struct {
	lease          *timed
	arrived, began time.Time
	point          int       // of the log, to be applied first
	back           time.Time // when the barrier is passed at the earliest
}

type leaseModel struct {
	t       *testing.T
	r       *rand.Rand
	fault   leaseFault
	now     time.Time
	members []*leaseMember
	log     []leaseCommand
	flying  []leaseCommand
	state   orderedState
	promise time.Time // until when the lease was promised to live
	comes   float64   // how likely the client comes to a member in a step
	leaves  time.Time // when the client comes no more
	broken  string

	answers, claims, checkpoints int
}

func newLeaseModel(t *testing.T, seed uint64, fault leaseFault) *leaseModel {
	m := &leaseModel{t: t, r: rand.New(rand.NewPCG(seed, 17)), fault: fault, now: begin}
	m.comes, m.leaves = []float64{0.003, 0.01, 0.05}[m.r.IntN(3)], begin.Add(time.Duration(m.r.Int64N(int64(time.Minute))))
	for range 3 {
		c := leaseClock{extension: time.Second, checkpoint: 3 * time.Second, retry: 3 * time.Second}
		c.reset()
		c.load(7, modelTTL, 0)
		m.members = append(m.members, &leaseMember{clock: c})
	}
	return m
}

func (m *leaseModel) chance(p float64) bool { return m.r.Float64() < p }

// within is a random time, mostly short.
func (m *leaseModel) within(longest time.Duration) time.Duration {
	if m.chance(0.5) {
		longest /= 20
	}
	return time.Duration(m.r.Int64N(int64(longest) + 1))
}

func (m *leaseModel) propose(c leaseCommand) {
	if !m.chance(0.1) {
		c.arrives = m.now.Add(m.within(8 * time.Second))
		m.flying = append(m.flying, c)
	}
}

// order moves what arrived to the log. A lease must not end before what was promised.
func (m *leaseModel) order() {
	kept := m.flying[:0]
	for _, c := range m.flying {
		if c.arrives.After(m.now) {
			kept = append(kept, c)
			continue
		}
		m.log = append(m.log, c)
		if m.state.apply(uint64(len(m.log)), &c, m.fault) && c.kind == 'e' && m.now.Before(m.promise) {
			m.broken = fmt.Sprintf("it ended %s too early", m.promise.Sub(m.now))
		}
	}
	m.flying = kept
}

func (m *leaseModel) step() {
	m.now = m.now.Add(modelStep)
	m.order()
	for id, p := range m.members {
		if p.stands.After(m.now) {
			continue
		}
		if m.chance(0.01) {
			p.stands = m.now.Add(m.within(15 * time.Second))
			continue
		}
		if m.chance(0.01) {
			p.slow = m.now.Add(m.within(15 * time.Second))
		}
		if !p.slow.After(m.now) {
			m.apply(id, p)
		}
		m.answer(p)
		if !p.looks.After(m.now) {
			p.looks = m.now.Add(leaseTick)
			m.look(p)
		}
		if m.now.Before(m.leaves) && m.chance(m.comes) {
			m.arrive(p)
		}
		if m.chance(0.01) {
			m.claims++
			m.propose(leaseCommand{kind: 'c', member: id})
		}
	}
}

// apply lets a member catch up, a little or wholly.
func (m *leaseModel) apply(id int, p *leaseMember) {
	for ; p.applied < len(m.log) && !m.chance(0.05); p.applied++ {
		c := &m.log[p.applied]
		position := uint64(p.applied + 1)
		if !p.state.apply(position, c, m.fault) {
			continue
		}
		switch c.kind {
		case 'c':
			p.clock.demote()
			if c.member == id {
				p.clock.promote(m.now, position, 0)
			}
		case 'e':
			p.clock.revoked(7)
		case 's':
			p.clock.noted(7, c.left)
			p.clock.tookEffect(c.number)
		}
	}
}

func (m *leaseModel) look(p *leaseMember) {
	if !p.clock.acting {
		return
	}
	out := p.clock.due(m.now)
	for range out.ends {
		m.propose(leaseCommand{kind: 'e', guard: p.clock.claim})
	}
	for _, s := range out.checkpoints {
		m.checkpoints++
		m.propose(leaseCommand{kind: 's', guard: p.clock.claim, number: out.number, left: s.left})
	}
}

func (m *leaseModel) arrive(p *leaseMember) {
	r := &leaseRenewal{arrived: m.now, lease: p.clock.hold(7)}
	m.confirm(r)
	p.renewals = append(p.renewals, r)
}

func (m *leaseModel) confirm(r *leaseRenewal) {
	r.began, r.point, r.back = m.now, len(m.log), m.now.Add(m.within(6*time.Second))
	if m.fault == faultBarrierless {
		r.point, r.back = 0, m.now
	}
}

func (m *leaseModel) answer(p *leaseMember) {
	kept := p.renewals[:0]
	for _, r := range p.renewals {
		if m.settled(p, r) {
			if r.lease != nil {
				p.clock.release(m.now, r.lease, true)
			}
			continue
		}
		kept = append(kept, r)
	}
	p.renewals = kept
}

func (m *leaseModel) settled(p *leaseMember, r *leaseRenewal) bool {
	if m.now.Sub(r.arrived) > renewalTimeout {
		return true
	}
	if p.applied < r.point || r.back.After(m.now) {
		return false
	}
	began := r.began
	if m.fault == faultFreshAlways {
		began = m.now
	}
	ttl, v := p.clock.answer(m.now, began, 7)
	if v == renewShortened && m.fault == faultAnswerAtOnce {
		ttl, v = modelTTL, renewDone
	}
	switch v {
	case renewDone:
		m.answers++
		if until := m.now.Add(seconds(ttl)); until.After(m.promise) {
			m.promise = until
		}
		return true
	case renewStale:
		m.confirm(r)
	case renewShortened:
		if number := p.clock.clear(m.now, 7); number > 0 {
			m.propose(leaseCommand{kind: 's', guard: p.clock.claim, number: number})
		}
	case renewUnknown, renewElsewhere:
		return true
	}
	return false
}

// run runs a model for two minutes, of which the client is there for one at most.
func (m *leaseModel) run() string {
	for range 1200 {
		if m.step(); m.broken != "" || m.state.ended {
			return m.broken
		}
	}
	return ""
}

func TestPromisedLeasesLive(t *testing.T) {
	answers, checkpoints, ended := 0, 0, 0
	for seed := range uint64(2000) {
		m := newLeaseModel(t, seed, faultNone)
		require.Empty(t, m.run(), "seed %d", seed)
		answers, checkpoints = answers+m.answers, checkpoints+m.checkpoints
		if m.state.ended {
			ended++
		}
	}
	t.Logf("%d answers, %d checkpoints, %d of 2000 leases ended", answers, checkpoints, ended)
	require.Greater(t, answers, 5000)
	require.Greater(t, checkpoints, 1000)
	require.Greater(t, ended, 1000)
}

func TestLeaseModelFindsFaults(t *testing.T) {
	for name, fault := range map[string]leaseFault{
		"answered before checkpoints are taken back": faultAnswerAtOnce, "checkpoints in any order": faultUnnumbered,
		"confirmations do not age": faultFreshAlways, "decisions of earlier primaries count": faultUnguarded,
		"not confirmed": faultBarrierless,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20_000) {
				if newLeaseModel(t, seed, fault).run() != "" {
					t.Logf("seed %d", seed)
					return
				}
			}
			t.Error("not found")
		})
	}
}
