package registry

import (
	"slices"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// A Guess finds out which cores may have written what is in a directory that does not tell its core: those
// that would have written every record and every snapshot there. It starts with all of them, each by the names that
// earlier versions had for it. Not safe for concurrent use.
type Guess struct {
	left []protocol.Former
	// begins: the log has an instance's first entry. commands: it has commands. kinds are the kinds of its
	// entries.
	begins, commands bool
	kinds            []protocol.EntryKind
}

// NewGuess returns a Guess that has seen nothing.
func NewGuess() *Guess {
	g := &Guess{}
	for _, c := range Cores() {
		g.left = append(g.left, protocol.Former{Name: c.Name, Section: c.Section, Wrote: c.Wrote, Begins: c.Begins})
		g.left = append(g.left, c.Former...)
	}
	return g
}

// Record takes in a record of the log, of any instance.
func (g *Guess) Record(r *protocol.Record) {
	g.left = slices.DeleteFunc(g.left, func(c protocol.Former) bool { return !c.Wrote(r) })
	if r.Kind != protocol.RecordEntry {
		return
	}
	g.begins = g.begins || r.Entry.Index == 1
	g.commands = g.commands || r.Entry.Kind.Commands()
	if !slices.Contains(g.kinds, r.Entry.Kind) {
		g.kinds = append(g.kinds, r.Entry.Kind)
	}
}

// Snapshot takes in a snapshot that stands for entries. section is the name of a section in it, "" if it has
// none: a core that derives something has one in each of them.
func (g *Guess) Snapshot(section string) {
	g.left = slices.DeleteFunc(g.left, func(c protocol.Former) bool { return c.Section != section })
}

// Cores returns the names of the cores that are left and ran in an order when directories did not tell their cores.
func (g *Guess) Cores(o order.Kind) (names []string) {
	for _, c := range g.left {
		if !slices.ContainsFunc(list, func(p *Protocol) bool { return p.Told() == c.Name && p.ran(o) }) {
			continue
		}
		if g.begins && g.commands && c.Begins != 0 && !slices.Contains(g.kinds, c.Begins) {
			continue
		}
		names = append(names, c.Name)
	}
	return names
}

// Core returns the name of the core that a directory records by a name.
func (g *Guess) Core(name string) string {
	if c := CoreOf(name); c != nil {
		return c.Name
	}
	return name
}

// ran reports whether the protocol ran in an order when directories did not tell their cores.
func (p *Protocol) ran(o order.Kind) bool {
	return slices.Contains(p.Orders, o) && (o == p.Orders[0] || !p.Core.Judged.ManyLead)
}
