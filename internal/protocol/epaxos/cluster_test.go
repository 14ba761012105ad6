package epaxos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
)

// group is a cluster in memory whose links lose, duplicate and reorder messages, with its invariants.
type group struct {
	players []*player
	size    Size
	mutant  protocol.Mutant
	random  *rand.Rand
	net     [][]byte
	lossy   bool
	decided map[ID]Value
	begun   map[ID]map[ID]bool // what any member had executed when a command was proposed
	first   map[ID]bool        // what any member has executed
	touches map[ID]Touches
	wrong   error
}

func newGroup(members int, mutant protocol.Mutant, seed uint64) *group {
	g := &group{
		size: SizeOf(members), mutant: mutant, random: rand.New(rand.NewPCG(seed, 1)), lossy: true,
		decided: map[ID]Value{}, begun: map[ID]map[ID]bool{}, first: map[ID]bool{}, touches: map[ID]Touches{},
	}
	for i := range members {
		p := &player{group: g, self: Column(i + 1), disk: map[ID][]byte{}}
		g.players = append(g.players, p)
		p.start()
	}
	return g
}

func (g *group) must(err error) {
	if err != nil && g.wrong == nil {
		g.wrong = err
	}
}

func (g *group) insist(is bool) {
	if !is {
		g.must(errors.New("a message is not complete"))
	}
}

// transmit encodes a message, as links do.
func (g *group) transmit(m *protocol.Message) {
	b := m.AppendHead(nil)
	for i := range m.Entries {
		b = append(append(b, m.Entries[i].Head()...), m.Entries[i].Payload...)
	}
	g.net = append(g.net, m.AppendHoldings(b))
}

func (g *group) deliver() {
	at := g.random.IntN(len(g.net))
	b := g.net[at]
	if !g.lossy || g.random.IntN(10) > 0 { // otherwise it is delivered again
		g.net[at] = g.net[len(g.net)-1]
		g.net = g.net[:len(g.net)-1]
	}
	if g.lossy && g.random.IntN(10) == 0 {
		return
	}
	m, err := protocol.DecodeMessage(b, Codec)
	g.must(err)
	if err == nil {
		if p := g.players[m.To-1]; p.alive {
			p.handle(m)
		}
	}
}

func (g *group) agree(id ID, v Value) {
	old, known := g.decided[id]
	if !known {
		g.decided[id] = v
	} else if (old.Command == nil) != (v.Command == nil) || v.Command != nil && !old.Deps.Equal(v.Deps) {
		g.must(fmt.Errorf("disagreement: %s is decided with %v and %v", id, old, v))
	}
}

// executed checks the order in which a member executes: the same on all for commands that interfere, and no command
// before one that was executed when it was proposed.
func (g *group) executed(p *player, id ID, v Value) {
	g.first[id] = true
	if v.Command == nil {
		return
	}
	for _, other := range g.players {
		if other == p {
			continue
		}
		g.compare(p, other, id, v)
	}
	for earlier := range g.begun[id] {
		if e := g.decided[earlier]; e.Command != nil && e.Command.Touches.Interfere(v.Command.Touches) &&
			!p.replica.Executed(earlier) {
			g.must(fmt.Errorf("late: %s was executed when %s was proposed, and comes after it on %d", earlier, id, p.self))
		}
	}
}

// compare checks that this member has executed what another one executed before id.
func (g *group) compare(p, other *player, id ID, v Value) {
	if !other.replica.Executed(id) {
		return
	}
	for _, d := range other.log {
		if d.id == id {
			return
		}
		if d.value.Command != nil && d.value.Command.Touches.Interfere(v.Command.Touches) && !p.replica.Executed(d.id) {
			g.must(fmt.Errorf("order: %s comes before %s on %d, and not on %d", d.id, id, other.self, p.self))
		}
	}
}

func (g *group) command() *Command {
	e := protocol.Entry{Kind: protocol.EntryBatch,
		ID: protocol.ProposalID{Session: protocol.Session{Member: 1, Incarnation: 1}, Seq: 1}, Count: 1,
		Payload: protocol.AppendCommand(nil, []byte{1})}
	e.SealPayload()
	e.Seal(1, 1, make([]byte, protocol.HeadSize))
	var keys []uint64
	if g.random.IntN(10) > 0 {
		for range 1 + g.random.IntN(2) {
			keys = append(keys, uint64(g.random.IntN(4)))
		}
	}
	return &Command{Entry: e, Touches: TouchesOf(keys)}
}

func (g *group) propose(p *player) {
	seen := map[ID]bool{}
	for id := range g.first {
		seen[id] = true
	}
	id := p.propose(g.command())
	g.begun[id] = seen
}

// step is any step that may happen.
func (g *group) step() {
	p := g.players[g.random.IntN(len(g.players))]
	switch n := g.random.IntN(100); {
	case n < 75 && len(g.net) > 0:
		g.deliver()
	case n < 81:
		g.propose(p)
	case n < 82:
		p.crash()
	case n < 85:
		g.recoverAny(p)
	case n < 86:
		for _, id := range sorted(p.openings) {
			if p.replica.Record(id).Promised == 0 {
				p.act(id, 0, outcomeOf(p.openings[id].Late()))
			}
		}
	default:
		p.execute(1 + g.random.IntN(20))
	}
}

// undecided are the commands that a member knows, without a decision.
func (p *player) undecided() (out []ID) {
	for c := Column(1); int(c) <= len(p.players); c++ {
		for n := p.replica.column(c).executed + 1; n <= p.replica.Window(c); n++ {
			if _, known := p.replica.Decision(ID{c, n}); !known {
				out = append(out, ID{c, n})
			}
		}
	}
	for _, id := range p.graph.Blockers(10) {
		out = insert(out, id)
	}
	return out
}

func (g *group) recoverAny(p *player) {
	if ids := p.undecided(); len(ids) > 0 {
		p.recover(ids[g.random.IntN(len(ids))])
	}
}

// finish stops some members and has the others decide all that they know.
func (g *group) finish() {
	g.lossy = false
	for _, at := range g.random.Perm(len(g.players))[:g.random.IntN(g.size.Failing+1)] {
		g.players[at].alive = false
	}
	var alive []*player
	for _, p := range g.players {
		if p.alive {
			alive = append(alive, p)
		}
	}
	for round := range 30 {
		for _, p := range alive {
			for _, id := range p.undecided() {
				if r := p.recoveries[id]; r == nil || r.stage != waits {
					if p == alive[round%len(alive)] {
						p.recover(id)
					}
				} else {
					p.wait(r)
				}
			}
		}
		for len(g.net) > 0 && g.wrong == nil {
			g.deliver()
		}
		for _, p := range alive {
			p.execute(1 << 20)
		}
		if g.wrong != nil {
			break
		}
	}
	for _, p := range alive {
		if left := p.undecided(); len(left) > 0 {
			g.must(fmt.Errorf("stuck: %d does not come to decide %v", p.self, left))
		}
		if p.graph.Waiting() > 0 {
			g.must(fmt.Errorf("stuck: %d has decided commands that it does not execute", p.self))
		}
	}
}

func play(members int, mutant protocol.Mutant, seed uint64, steps int) *group {
	g := newGroup(members, mutant, seed)
	for range steps {
		if g.step(); g.wrong != nil {
			return g
		}
	}
	g.finish()
	return g
}

func TestClusters(t *testing.T) {
	for _, members := range []int{1, 2, 3, 4, 5, 7} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			executed, noops := 0, 0
			for seed := range testsize.Pick[uint64](testsize.Seeds, 5, 20, 60) {
				g := play(members, "", seed, 100+int(seed)*5)
				require.NoError(t, g.wrong, "seed %d", seed)
				for _, v := range g.decided {
					executed++
					if v.Command == nil {
						noops++
					}
				}
			}
			t.Logf("%d commands, %d of them no-ops", executed, noops)
		})
	}
}

func TestMutants(t *testing.T) {
	testsize.Long(t)
	// Two are rarely found: campaign mutants searches for them from the first seed; here the search begins just before
	// the seed that finds them.
	begin := map[protocol.Mutant]uint64{MutantOneBallot: 4040, MutantOnlyDecided: 3340}
	for _, m := range append(PartMutants[:2:2], Mutants[:ruleMutants]...) {
		if begin[m.Name] > 0 && !testsize.Runs(testsize.Mutants) {
			continue
		}
		t.Run(string(m.Name), func(t *testing.T) {
			for seed := begin[m.Name]; seed < begin[m.Name]+3000; seed++ {
				for _, members := range []int{3, 5} {
					if g := play(members, m.Name, seed, 60+int(seed%10)*30); g.wrong != nil {
						t.Logf("%d members, seed %d: %s", members, seed, g.wrong)
						return
					}
				}
			}
			t.Errorf("nobody finds that %s", m.Does)
		})
	}
}
