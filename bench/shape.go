package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// Shape is one of braid's own protocols with its settings, as a cluster runs it. All are one program. The zero value
// sets nothing.
type Shape struct {
	Protocol string
	Values   setting.Values // those that all protocols have, and its own
}

// Own reports whether a protocol is one of braid's own.
func Own(protocol string) bool { return registry.Find(protocol) != nil }

// choose checks the values for a number of members and completes them.
func (s Shape) choose(members int) (registry.Choice, error) {
	p := registry.Find(s.Protocol)
	if p == nil {
		return registry.Choice{}, fmt.Errorf("protocol %q is none of braid's own: %s", s.Protocol,
			strings.Join(registry.Names(), ", "))
	}
	c, err := p.Choose(s.Values, members)
	// The others' placement is part of their name.
	if own := p.Placements[0]; err == nil && !p.Merges() && c.Placement != own {
		err = fmt.Errorf("placement %s: protocol %s is measured with placement %s", c.Placement, p.Name, own)
	}
	return c, err
}

// Apply sets a node's options.
func (s Shape) Apply(o *braid.Options) error {
	if _, err := s.choose(len(o.Members)); err != nil {
		return err
	}
	o.Protocol = braid.Named(s.Protocol, s.Values.Texts()...)
	return nil
}

// Only returns the shape without settings that the protocol does not have.
func (s Shape) Only() Shape {
	p := registry.Find(s.Protocol)
	if p == nil {
		return Shape{Protocol: s.Protocol}
	}
	has := setting.Table{Rows: slices.Clone(p.Core.Settings.Rows)}
	if p.Several() {
		has.Rows = append(has.Rows, common.Instances)
	}
	if p.Several() && !p.Moves() {
		has.Rows = append(has.Rows, common.Leaders)
	}
	if p.Merges() {
		has.Rows = append(has.Rows, common.Placement)
	}
	if place := common.Placement.In(has.Only(s.Values)); cmp.Or(place, p.Placements[0]) != protocol.PlacementCopy {
		has.Rows = append(has.Rows, common.CodeK, common.ExtraWhole, common.TrimWhole)
	}
	if p.Serves() {
		has.Rows = append(has.Rows, common.Fitting.Rows...)
	}
	s.Values = has.Only(s.Values)
	return s
}

// Groups returns the number of groups of keys in a cluster of this many members, each with a separate order; 0: there
// is one order.
func (s Shape) Groups(members int) int {
	c, err := s.choose(members)
	if err != nil {
		return 0
	}
	return c.Groups()
}

// KeyOf derives a key from a number: a command's key, if each command has a different one.
func KeyOf(number uint64) uint64 {
	number ^= number >> 31
	number *= 0x9E3779B97F4A7C15
	return number ^ number>>29
}

// flags returns the flags of a server with this shape, without its protocol. A server has no flags for settings of
// experiments.
func (s Shape) flags() []string {
	return append(setting.Union(common.Layout, common.Fitting).Args(s.Values), registry.Settings().Args(s.Values)...)
}

// Spread reports whether leaders are spread over the members, so that clients should propose at all of them: each
// then has a leader on its member. Otherwise one member leads all instances.
func (s Shape) Spread() bool {
	c, err := s.choose(1)
	return err == nil && c.Spread()
}

// LeadersInPlace reports whether every instance has a leader and the leaders are distributed as the shape requires.
// Together: one member leads all instances. Spread: as many members as possible lead. A new leader transfers
// leadership later.
func (s Shape) LeadersInPlace(status *braid.Status) bool {
	var leaders []braid.MemberID
	for i := range status.Instances {
		l := status.Instances[i].Leader
		if l == 0 {
			return false
		}
		if !slices.Contains(leaders, l) {
			leaders = append(leaders, l)
		}
	}
	voters := 0
	for i := range status.Members {
		if !status.Members[i].Learner {
			voters++
		}
	}
	if p := registry.Find(s.Protocol); p != nil && p.Moves() {
		return true
	}
	if s.Spread() {
		return len(leaders) == min(len(status.Instances), voters)
	}
	return len(leaders) == 1
}
