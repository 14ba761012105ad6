package server

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A model of the rule in early.go: members that lag, clocks that do not go alike, lanes whose puts become
// certain and come into the log at any time, and one AuthEnable. What is answered must take effect, and nothing
// may take effect once AuthEnable is acknowledged.

// earlyFault is a wrong variant of the rule, which the model must find.
type earlyFault uint8

const (
	earlyRight    earlyFault = iota
	earlyUnasked             // the state is not looked at before a put is answered
	earlyOld                 // it may be of any age
	earlyHasty               // AuthEnable does not wait for other members
	earlyUnbarred            // what was answered need not be in the log before the closing command
	earlyOpen                // nothing is closed
	earlySelfless            // the age of the state counts from the end of the barrier
	earlyShort               // AuthEnable waits for less than a state may be old
	earlyFaults
)

func (f earlyFault) String() string {
	return [...]string{"right", "unasked", "old", "hasty", "unbarred", "open", "selfless", "short"}[f]
}

type modelPut struct {
	owner                      int
	certain, answered, ordered bool
	effect                     bool
}

type modelMember struct {
	applied int
	rate    float64 // of its clock
	began   float64 // of the newest barrier that was passed, by its clock
	// A barrier that is under way: when it began, and what has to be applied.
	asked float64
	point int
	slow  float64 // until then it applies nothing
}

type earlyModel struct {
	r       *rand.Rand
	fault   earlyFault
	now     float64
	log     []int // puts by number; modelEnable, modelClose
	puts    []*modelPut
	members []*modelMember
	// stage of AuthEnable, at member 0: 0 not begun, 1 ordered, 2 waits for members, 3 closing, 4 acknowledged.
	stage   int
	waits   float64
	silent  bool // members do not answer member 0
	broken  string
	answers int
}

const (
	modelEnable, modelClose = -1, -2
	modelLimit              = 4.0 // seconds
)

func newEarlyModel(seed uint64, fault earlyFault) *earlyModel {
	m := &earlyModel{r: rand.New(rand.NewPCG(seed, 5)), fault: fault}
	m.silent = m.r.IntN(2) == 0
	for range 3 {
		m.members = append(m.members, &modelMember{rate: 1 + 0.1*m.r.Float64(), began: -100, asked: -1})
	}
	return m
}

func (m *earlyModel) chance(p float64) bool { return m.r.Float64() < p }

// knows reports whether a member has applied AuthEnable.
func (m *earlyModel) knows(p *modelMember) bool {
	for _, e := range m.log[:p.applied] {
		if e == modelEnable {
			return true
		}
	}
	return false
}

func (m *earlyModel) fresh(p *modelMember) bool {
	return m.fault == earlyOld || p.rate*m.now-p.began <= modelLimit
}

// append orders a put, or a command of AuthEnable. A put takes effect unless it is closed.
func (m *earlyModel) append(e int) {
	m.log = append(m.log, e)
	if e < 0 {
		return
	}
	put := m.puts[e]
	put.certain, put.ordered, put.effect = true, true, true
	for _, before := range m.log {
		put.effect = put.effect && before != modelClose
	}
	if put.effect && m.stage == 4 {
		m.broken = fmt.Sprintf("put %d takes effect after AuthEnable was acknowledged", e)
	}
	if put.answered && !put.effect {
		m.broken = fmt.Sprintf("put %d was answered and is refused", e)
	}
}

func (m *earlyModel) step() {
	m.now += 0.1
	for i, p := range m.members {
		m.member(i, p)
	}
	for i, put := range m.puts {
		switch {
		case put.ordered:
		case m.chance(0.02):
			m.append(i)
		case m.chance(0.05):
			put.certain = true
		}
		owner := m.members[put.owner]
		if put.certain && !put.answered && m.chance(0.2) {
			if m.fault == earlyUnasked || m.fresh(owner) && !m.knows(owner) {
				put.answered = true
				m.answers++
				if put.ordered && !put.effect {
					m.broken = fmt.Sprintf("put %d is answered and was refused", i)
				}
			}
		}
	}
	m.enable()
}

func (m *earlyModel) member(i int, p *modelMember) {
	if m.chance(0.02) {
		p.slow = m.now + 10*m.r.Float64()
	}
	if p.slow <= m.now && p.applied < len(m.log) {
		p.applied += 1 + m.r.IntN(len(m.log)-p.applied)
	}
	if p.asked < 0 && m.chance(0.1) {
		p.asked, p.point = p.rate*m.now, len(m.log)
	}
	if p.asked >= 0 && p.applied >= p.point && m.chance(0.2) {
		p.began, p.asked = p.asked, -1
		if m.fault == earlySelfless {
			p.began = p.rate * m.now
		}
	}
	if m.chance(0.05) && m.fresh(p) && !m.knows(p) {
		m.puts = append(m.puts, &modelPut{owner: i})
	}
}

// enable does the next step of AuthEnable.
func (m *earlyModel) enable() {
	p := m.members[0]
	switch m.stage {
	case 0:
		if m.chance(0.02) {
			m.append(modelEnable)
			m.stage = 1
		}
	case 1:
		if m.knows(p) {
			m.stage, m.waits = 2, p.rate*m.now+modelLimit*1.1
			if m.fault == earlyShort {
				m.waits -= 0.5 * modelLimit
			}
		}
	case 2:
		all := !m.silent
		for _, o := range m.members {
			all = all && m.knows(o)
		}
		if all || p.rate*m.now >= m.waits || m.fault == earlyHasty {
			m.stage = 3
		}
	case 3:
		for i, put := range m.puts {
			if put.certain && !put.ordered && m.fault != earlyUnbarred {
				m.append(i)
			}
		}
		if m.fault != earlyOpen {
			m.append(modelClose)
		}
		m.stage = 4
	}
}

func (m *earlyModel) run() string {
	for range 600 {
		if m.step(); m.broken != "" {
			break
		}
	}
	return m.broken
}

func TestEarlyAnswersHold(t *testing.T) {
	answers, acknowledged := 0, 0
	for seed := range uint64(2000) {
		m := newEarlyModel(seed, earlyRight)
		require.Empty(t, m.run(), "seed %d", seed)
		answers += m.answers
		if m.stage == 4 {
			acknowledged++
		}
	}
	t.Logf("%d answers, %d of 2000 acknowledged", answers, acknowledged)
	require.Greater(t, answers, 5000)
	require.Greater(t, acknowledged, 1500)
}

func TestEarlyModelFindsFaults(t *testing.T) {
	for fault := earlyRight + 1; fault < earlyFaults; fault++ {
		t.Run(fault.String(), func(t *testing.T) {
			for seed := range uint64(20_000) {
				if broken := newEarlyModel(seed, fault).run(); broken != "" {
					t.Logf("seed %d: %s", seed, broken)
					return
				}
			}
			t.Error("not found")
		})
	}
}
