package leaseclock

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
)

// The promises of docs/internals/leases.md, on members that are a lease clock and a place in a log each:
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
	faultUnrecorded              // a renewal of a recorded term does not wait until it is recorded
	faultForgetful               // each term gives a lease its full time
)

type leaseCommand struct {
	kind          byte // 'c'laim, 'e'nd, 's'horten
	member        int
	recorded      bool
	guard, number uint64
	left          int64
	arrives       time.Time // at the log
}

// orderedState is the state according to the log.
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
	clock   Clock
	state   orderedState
	applied int
	stands  time.Time // until then it does nothing
	slow    time.Time // until then it applies nothing
	looks   time.Time // when it calls Due

	renewals []*leaseRenewal
}

type leaseRenewal struct {
	lease          *Lease
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
	promise time.Time // until when the lease was promised to exist
	comes   float64   // how likely the client comes to a member in a step
	leaves  time.Time // when the client comes no more
	broken  string

	answers, claims, recorded, checkpoints int
}

func newLeaseModel(t *testing.T, seed uint64, fault leaseFault) *leaseModel {
	m := &leaseModel{t: t, r: rand.New(rand.NewPCG(seed, 17)), fault: fault, now: begin}
	m.comes, m.leaves = []float64{0.003, 0.01, 0.05}[m.r.IntN(3)], begin.Add(time.Duration(m.r.Int64N(int64(time.Minute))))
	for range 3 {
		c := Clock{Extension: time.Second, Checkpoint: 3 * time.Second, Retry: 3 * time.Second}
		c.Reset()
		c.Load(7, modelTTL, 0)
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
			p.looks = m.now.Add(Tick)
			m.look(p)
		}
		if m.now.Before(m.leaves) && m.chance(m.comes) {
			m.arrive(p)
		}
		if m.chance(0.01) {
			m.claim(id, p)
		}
	}
}

func (m *leaseModel) claim(id int, p *leaseMember) {
	m.claims++
	c := leaseCommand{kind: 'c', member: id, recorded: p.clock.FollowsSoon(m.now)}
	if c.recorded {
		m.recorded++
	}
	m.propose(c)
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
			p.clock.Demote()
			if m.fault == faultForgetful {
				p.clock.whole = false
			}
			p.clock.Claimed(m.now, c.recorded)
			if c.member == id {
				p.clock.Promote(m.now, position, 0, c.recorded)
			}
		case 'e':
			p.clock.Revoked(7)
		case 's':
			p.clock.Checkpointed(7, c.left)
			p.clock.TookEffect(c.number)
		}
	}
}

func (m *leaseModel) look(p *leaseMember) {
	if !p.clock.acting {
		return
	}
	out := p.clock.Due(m.now)
	for range out.Ends {
		m.propose(leaseCommand{kind: 'e', guard: p.clock.claim})
	}
	for _, s := range out.Checkpoints {
		m.checkpoints++
		m.propose(leaseCommand{kind: 's', guard: p.clock.claim, number: out.Number, left: s.Left})
	}
}

func (m *leaseModel) arrive(p *leaseMember) {
	r := &leaseRenewal{arrived: m.now, lease: p.clock.Hold(7)}
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
				p.clock.Release(m.now, r.lease, true)
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
	ttl, v := p.clock.Answer(m.now, began, 7)
	l := p.clock.leases[7]
	if v == Shortened &&
		(m.fault == faultAnswerAtOnce ||
			m.fault == faultUnrecorded && l.remaining == 0 && l.checkpoint.newest <= p.clock.checkpoints.effective) {
		ttl, v = modelTTL, Done
	}
	switch v {
	case Done:
		m.answers++
		if until := m.now.Add(seconds(ttl)); until.After(m.promise) {
			m.promise = until
		}
		return true
	case Stale:
		m.confirm(r)
	case Shortened:
		if number := p.clock.cleared(m.now, 7); number > 0 {
			m.propose(leaseCommand{kind: 's', guard: p.clock.claim, number: number})
		}
	case Unknown, Elsewhere:
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

func TestPromisedLeasesDoNotEnd(t *testing.T) {
	answers, checkpoints, recorded, ended := 0, 0, 0, 0
	for seed := range uint64(2000) {
		m := newLeaseModel(t, seed, faultNone)
		require.Empty(t, m.run(), "seed %d", seed)
		answers, checkpoints, recorded = answers+m.answers, checkpoints+m.checkpoints, recorded+m.recorded
		if m.state.ended {
			ended++
		}
	}
	t.Logf("%d answers, %d checkpoints, %d recorded terms, %d of 2000 leases ended", answers, checkpoints, recorded, ended)
	require.Greater(t, recorded, 5000)
	require.Greater(t, answers, 5000)
	require.Greater(t, checkpoints, 1000)
	require.Greater(t, ended, 1000)
}

// storm runs a model whose members claim one after the other, every two seconds or sooner, while nothing
// stands still. It returns how long after its client left the lease ended; 0: it did not within three minutes.
func (m *leaseModel) storm() time.Duration {
	m.leaves = begin.Add(time.Duration(m.r.Int64N(int64(20 * time.Second))))
	for _, p := range m.members {
		p.clock.Checkpoint = time.Minute // each term begins soon after the one before
	}
	next := begin
	for m.now.Before(m.leaves.Add(3 * time.Minute)) {
		m.now = m.now.Add(modelStep)
		m.order()
		if m.state.ended || m.broken != "" {
			return m.now.Sub(m.leaves)
		}
		if !next.After(m.now) {
			id := m.r.IntN(len(m.members))
			m.claim(id, m.members[id])
			next = m.now.Add(time.Second + m.within(time.Second))
		}
		for id, p := range m.members {
			m.apply(id, p)
			m.answer(p)
			if !p.looks.After(m.now) {
				p.looks = m.now.Add(Tick)
				m.look(p)
			}
			if m.now.Before(m.leaves) && m.chance(0.1) {
				m.arrive(p)
			}
		}
		for i := range m.flying {
			m.flying[i].arrives = minTime(m.flying[i].arrives, m.now.Add(2*modelStep))
		}
	}
	return 0
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// A lease ends in a storm of claims, however many there are: after the last term that may have renewed it, the
// time of a lease, and the graces. Without the rule it never does.
func TestLeasesEndInStorms(t *testing.T) {
	const bound = renewalTimeout + 2*(modelTTL*time.Second+time.Second) + mostGraces*(time.Second+leaseGrace) +
		5*time.Second
	longest, never := time.Duration(0), 0
	for seed := range uint64(300) {
		m := newLeaseModel(t, seed, faultNone)
		late := m.storm()
		require.Empty(t, m.broken, "seed %d", seed)
		require.NotZero(t, late, "seed %d", seed)
		longest = max(longest, late)
		if newLeaseModel(t, seed, faultForgetful).storm() == 0 {
			never++
		}
	}
	t.Logf("%s after its client left at most; without the rule %d of 300 did not end", longest, never)
	require.Less(t, longest, bound)
	require.Greater(t, never, 200)
}

func TestLeaseModelFindsFaults(t *testing.T) {
	testsize.Long(t)
	for name, fault := range map[string]leaseFault{
		"answered before checkpoints are taken back": faultAnswerAtOnce, "checkpoints in any order": faultUnnumbered,
		"confirmations do not age": faultFreshAlways, "decisions of earlier primaries count": faultUnguarded,
		"not confirmed": faultBarrierless, "renewals that are not recorded": faultUnrecorded,
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
