package fault

import (
	"slices"

	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Serving returns the members of alive that must make progress: those in the last configuration that any of them has
// applied.
func Serving(w *World, alive []*node.Member) []*node.Member {
	var last *node.Member
	for _, m := range alive {
		if m.Up && (last == nil || m.Reached() > last.Reached()) {
			last = m
		}
	}
	if last == nil {
		return nil
	}
	configs := last.Applier.Configs()
	if configs[0].Joint() || !last.Settled() && !LacksMember(w, &configs[0]) &&
		!slices.ContainsFunc(alive, (*node.Member).Owes) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(alive), func(m *node.Member) bool {
		return slices.ContainsFunc(configs, func(c protocol.Config) bool { return c.Find(m.ID) == nil })
	})
}

// LacksMember reports whether some member of a configuration is down. Instances may wait for it before they adopt the
// membership of the first.
func LacksMember(w *World, c *protocol.Config) bool {
	return slices.ContainsFunc(c.Members, func(m protocol.Member) bool { return !w.Member(m.ID).Up })
}
