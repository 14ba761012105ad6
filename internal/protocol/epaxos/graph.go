package epaxos

import (
	"fmt"
	"slices"
)

// Graph finds the order in which decided commands are executed (rule 10): strongly connected components of
// dependencies, by Tarjan's algorithm, without recursion, in steps of bounded work. It continues where it stopped;
// commands that are blocked by an undecided command are set aside until it is decided.
type Graph struct {
	executed Vector
	nodes    map[ID]*node
	ready    []ID // to begin with: just decided, or no longer blocked
	path     []*node
	open     []*node // visited, but in no component yet; held ones follow the command with which they are executed
	visits   uint64
	blocked  map[ID][]ID // by an undecided command
}

// node is a decided command that is not executed.
type node struct {
	id       ID
	deps     Vector
	visit    uint64 // 0: not in the search
	low      uint64
	next     int // the column of the next dependency to visit
	noop     bool
	isOpen   bool
	held     bool // a no-op whose dependencies were all visited: it is executed with the command that led to it
	blocked  bool
	queued   bool
	blocking ID
}

// NewGraph returns the graph of the commands after the executed ones.
func NewGraph(executed Vector) *Graph {
	return &Graph{executed: executed.Clone(), nodes: map[ID]*node{}, blocked: map[ID][]ID{}}
}

// Executed is the set of executed commands.
func (g *Graph) Executed() Vector { return g.executed }

// Waiting is the number of decided commands that wait for their execution, without no-ops.
func (g *Graph) Waiting() (n int) {
	for _, node := range g.nodes { // any order: they are counted
		if !node.noop {
			n++
		}
	}
	return n
}

// Decide adds a decided command. A no-op may come without dependencies, and is executed only when a command that is
// executed depends on it (rule 12). Commands that were added before, or executed, are skipped.
func (g *Graph) Decide(id ID, deps Vector, noop bool) {
	if g.executed.Covers(id) || g.nodes[id] != nil {
		return
	}
	n := &node{id: id, deps: deps.Clone().own(id), noop: noop}
	g.nodes[id] = n
	g.queue(n)
	g.free(id)
}

// free makes the commands ready that waited for a command that is decided now.
func (g *Graph) free(by ID) {
	freed := g.blocked[by]
	delete(g.blocked, by)
	for _, id := range freed {
		if n := g.nodes[id]; n != nil && n.blocked && n.blocking == by {
			n.blocked = false
			g.queue(n)
		}
	}
}

func (g *Graph) queue(n *node) {
	if !n.queued && !n.noop {
		n.queued = true
		g.ready = append(g.ready, n.id)
	}
}

// Component is a set of commands that depend on each other, in the order of their execution, with the no-ops on which
// they depend and that were not executed with others. They are executed together.
type Component []ID

// Run visits at most work dependencies, and appends the components to be executed now, in order. more: there is more
// to visit.
func (g *Graph) Run(work int, out []Component) (_ []Component, more bool) {
	for ; work > 0; work-- {
		if len(g.path) == 0 && !g.begin() {
			return out, false
		}
		out = g.step(out)
	}
	return out, len(g.path) > 0 || len(g.ready) > 0
}

// begin starts a search at the next command.
func (g *Graph) begin() bool {
	for len(g.ready) > 0 {
		n := g.nodes[g.ready[0]]
		if g.ready = g.ready[1:]; n == nil {
			continue
		}
		if n.queued = false; !n.blocked {
			g.visit(n)
			return true
		}
	}
	g.ready = nil
	return false
}

func (g *Graph) visit(n *node) {
	g.visits++
	n.visit, n.low, n.next, n.isOpen = g.visits, g.visits, 1, true
	g.path, g.open = append(g.path, n), append(g.open, n)
}

// step visits one dependency of the command at the end of the path.
func (g *Graph) step(out []Component) []Component {
	n := g.path[len(g.path)-1]
	for n.next <= len(n.deps) {
		id := ID{Column(n.next), n.deps[n.next-1]}
		if n.next++; !g.executed.Covers(id) {
			g.follow(n, id)
			return out
		}
	}
	return g.leave(n, out)
}

func (g *Graph) follow(n *node, id ID) {
	switch to := g.nodes[id]; {
	case to == nil:
		g.block(id)
	case to.blocked:
		g.block(to.blocking)
	case to.held: // it is executed with the first command that depends on it
		at := slices.Index(g.open, to)
		g.open = slices.Delete(g.open, at, at+1)
		to.held = false
		g.visit(to)
	case to.visit == 0:
		g.visit(to)
	case to.isOpen:
		n.low = min(n.low, to.visit)
	}
}

// block sets all visited commands aside: they depend on an undecided command.
func (g *Graph) block(by ID) {
	for _, n := range g.open {
		if n.visit, n.isOpen = 0, false; n.held {
			n.held = false
			continue
		}
		n.blocked, n.blocking = true, by
		g.blocked[by] = append(g.blocked[by], n.id)
	}
	g.path, g.open = g.path[:0], g.open[:0]
}

// leave ends the visit of a command, all of whose dependencies were visited.
func (g *Graph) leave(n *node, out []Component) []Component {
	g.path = g.path[:len(g.path)-1]
	if len(g.path) > 0 {
		parent := g.path[len(g.path)-1]
		parent.low = min(parent.low, n.low)
	}
	if n.low != n.visit {
		return out
	}
	at := len(g.open) - 1
	for g.open[at] != n {
		at--
	}
	nodes := g.open[at:]
	if !slices.ContainsFunc(nodes, func(n *node) bool { return !n.noop }) {
		for _, n := range nodes {
			n.held = true
		}
		return out
	}
	c := make(Component, len(nodes))
	for i, member := range nodes {
		c[i] = member.id
	}
	slices.SortFunc(c, ID.compare)
	for _, id := range c {
		g.executed = g.executed.raise(id)
		delete(g.nodes, id)
	}
	clear(nodes)
	g.open = g.open[:at]
	return append(out, c)
}

// MarkExecuted records that a component was executed by another member, after all that it depends on, and is executed
// here now.
func (g *Graph) MarkExecuted(c Component) {
	for _, n := range g.open { // the search starts again: what it has visited may be executed now
		n.visit, n.isOpen, n.held = 0, false, false
		g.queue(n)
	}
	g.path, g.open = g.path[:0], g.open[:0]
	for _, id := range c {
		g.executed = g.executed.raise(id)
		delete(g.nodes, id)
		g.free(id)
	}
}

// Blockers are the undecided commands for which others wait, ascending, at most most.
func (g *Graph) Blockers(most int) (out []ID) {
	for id := range g.blocked { // any order: they are sorted
		out = append(out, id)
	}
	slices.SortFunc(out, ID.compare)
	return out[:min(most, len(out))]
}

func (g *Graph) check() error {
	for i, n := range g.open {
		if g.nodes[n.id] != n || !n.isOpen || n.blocked || i > 0 && g.open[i-1].visit >= n.visit {
			return fmt.Errorf("command %s is open out of order", n.id)
		}
	}
	for id, n := range g.nodes { // any order: each is checked alone
		switch {
		case g.executed.Covers(id):
			return fmt.Errorf("command %s is executed and still decided", id)
		case n.blocked && (g.nodes[n.blocking] != nil || g.executed.Covers(n.blocking) ||
			!slices.Contains(g.blocked[n.blocking], id)):
			return fmt.Errorf("command %s is blocked by %s, which is decided", id, n.blocking)
		case !n.blocked && !n.queued && !n.isOpen && !n.noop:
			return fmt.Errorf("command %s is forgotten", id)
		}
	}
	return nil
}
