package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol/setting"
)

// Shape says which of braid's own protocols a cluster runs, and what is chosen of it. They are one
// program. raft, craft and rs-raft differ in what members keep of bodies. niagara merges several
// instances of raft or craft into one log.
type Shape struct {
	Protocol string
	// CodeK is how many fragments make a body whole, at most; 0: as the protocol chooses.
	CodeK int
	// Instances and Leaders are for niagara and multi-raft; 0 and "": as the protocol chooses.
	Instances int
	Leaders   string // braid.LeadersTogether or braid.LeadersSpread
	// Placement is for niagara; the others are named after theirs. Empty: the protocol's.
	Placement string // braid.PlacementCopy or braid.PlacementCode
	// Own are the protocol's own settings.
	Own setting.Values
}

// Own reports whether a protocol is one of braid's own.
func Own(protocol string) bool { return registry.Find(protocol) != nil }

// Apply sets a node's options.
func (s Shape) Apply(o *braid.Options) error {
	p := registry.Find(s.Protocol)
	if p == nil {
		return fmt.Errorf("protocol %q is none of braid's own: %s", s.Protocol, strings.Join(registry.Names(), ", "))
	}
	own := string(p.Placements[0])
	placement := s.placement(p)
	switch {
	case !p.Several() && s.Instances != 0:
		return fmt.Errorf("%d instances: protocol %s has one; niagara has more", s.Instances, s.Protocol)
	case s.Instances < 0 || s.Instances > braid.MaxInstances:
		return fmt.Errorf("%d instances: must be between 1 and %d", s.Instances, braid.MaxInstances)
	case !p.Several() && s.Leaders != "":
		return fmt.Errorf("leaders %s: protocol %s has one leader; niagara has more", s.Leaders, s.Protocol)
	case p.Core.Roams && s.Leaders != "":
		return fmt.Errorf("leaders %s: with %s they move to who asks for them", s.Leaders, s.Protocol)
	case !oneOf(s.Leaders, "", braid.LeadersTogether, braid.LeadersSpread):
		return fmt.Errorf("leaders %q: must be %s or %s", s.Leaders, braid.LeadersTogether, braid.LeadersSpread)
	case !oneOf(s.Placement, "", braid.PlacementCopy, braid.PlacementCode, own):
		return fmt.Errorf("placement %q: must be %s or %s", s.Placement, braid.PlacementCopy, braid.PlacementCode)
	case s.Placement != "" && s.Placement != placement:
		return fmt.Errorf("placement %s: protocol %s is placement %s", s.Placement, s.Protocol, placement)
	case s.CodeK < 0 || s.CodeK != 0 && placement == braid.PlacementCopy:
		return fmt.Errorf("%d fragments: protocol %s makes none%s", s.CodeK, s.Protocol, unlessCoded(p))
	}
	settings, err := p.Complete(s.Own)
	if err != nil {
		return err
	}
	o.Protocol, o.Order, o.Placement, o.CodeK = p.Name, string(p.Orders[0]), placement, s.CodeK
	o.Instances, o.Leaders, o.Settings = s.Instances, s.Leaders, settings
	return nil
}

// placement is the one that is chosen. Only a protocol that merges leaves the choice: the others
// are named after theirs.
func (s Shape) placement(p *registry.Protocol) string {
	if p.Weaves() {
		return cmp.Or(s.Placement, string(p.Placements[0]))
	}
	return string(p.Placements[0])
}

func unlessCoded(p *registry.Protocol) string {
	if p.Weaves() {
		return " with placement " + braid.PlacementCopy
	}
	return ""
}

// Only returns the shape without what the protocol does not have.
func (s Shape) Only() Shape {
	p := registry.Find(s.Protocol)
	if p == nil || !p.Several() {
		s.Instances, s.Leaders = 0, ""
	}
	if p == nil || !p.Weaves() {
		s.Placement = ""
	}
	if p == nil {
		s.Own = setting.Values{}
	} else {
		s.Own = p.Core.Settings.Only(s.Own)
	}
	if p == nil || s.placement(p) == braid.PlacementCopy {
		s.CodeK = 0
	}
	if p != nil && p.Core.Roams {
		s.Leaders = ""
	}
	return s
}

// Groups is how many groups of keys there are in a cluster of this many members, each with an order of its own; 0:
// there is one order.
func (s Shape) Groups(members int) int {
	o := braid.Options{Protocol: s.Protocol, Instances: s.Instances, Members: make([]braid.Member, members)}
	return o.Groups()
}

// KeyOf makes a key of a number: that of a command, where each command has a key of its own.
func KeyOf(number uint64) uint64 {
	number ^= number >> 31
	number *= 0x9E3779B97F4A7C15
	return number ^ number>>29
}

// flags are those of a server that is set up so; its protocol is said elsewhere. A server has no flags for
// settings of experiments.
func (s Shape) flags() (flags []string) {
	if s.Instances != 0 {
		flags = append(flags, "--instances", strconv.Itoa(s.Instances))
	}
	if s.Leaders != "" {
		flags = append(flags, "--leaders", s.Leaders)
	}
	if s.Placement != "" {
		flags = append(flags, "--placement", s.Placement)
	}
	flags = append(flags, registry.Settings().Args(s.Own)...)
	return flags
}

func oneOf(s string, some ...string) bool { return slices.Contains(some, s) }

// Spread reports whether the members share the leaders, so that clients should propose at
// all of them: each finds a leader alongside it. Otherwise one member leads all instances.
func (s Shape) Spread() bool {
	if s.Leaders == "" { // as braid.Options has it
		p := registry.Find(s.Protocol)
		return p != nil && (p.Weaves() && s.Placement == braid.PlacementCode || p.Keyed(""))
	}
	return s.Leaders == braid.LeadersSpread
}

// Settled reports whether all instances have a leader and these are as they should be: one
// member, or as many as can be. A leader that has just been elected hands over a while later.
func (s Shape) Settled(status *braid.Status) bool {
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
	if p := registry.Find(s.Protocol); p != nil && p.Core.Roams {
		return true
	}
	if s.Spread() {
		return len(leaders) == min(len(status.Instances), voters)
	}
	return len(leaders) == 1
}
