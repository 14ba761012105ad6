package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/braidlog/braid"
)

// Shape says which of braid's own protocols a cluster runs, and what is chosen of it. They are one
// program. raft, craft and rs-raft differ in what members keep of bodies. niagara weaves several
// instances of raft or craft into one log.
type Shape struct {
	Protocol string
	// CodeK is how many fragments make a body whole, at most; 0: as the protocol chooses.
	CodeK int
	// Instances and Leaders are for niagara; 0 and "": as the protocol chooses.
	Instances int
	Leaders   string // braid.LeadersTogether or braid.LeadersSpread
	// Placement is for niagara; the others are named after theirs. Empty: the protocol's.
	Placement string // braid.PlacementCopy or braid.PlacementCode
}

// shapes are braid's own protocols by their names.
var shapes = map[string]struct{ order, placement string }{
	"raft":    {braid.OrderSingle, braid.PlacementCopy},
	"craft":   {braid.OrderSingle, braid.PlacementCode},
	"rs-raft": {braid.OrderSingle, braid.PlacementRS},
	"niagara": {braid.OrderNiagara, braid.PlacementCopy},
}

// Own reports whether a protocol is one of braid's own.
func Own(protocol string) bool {
	_, ok := shapes[protocol]
	return ok
}

// Apply sets a node's options.
func (s Shape) Apply(o *braid.Options) error {
	p, ok := shapes[s.Protocol]
	if !ok {
		return fmt.Errorf("protocol %q is none of braid's own: raft, craft, rs-raft or niagara", s.Protocol)
	}
	own := p.placement
	if p.order == braid.OrderNiagara {
		p.placement = cmp.Or(s.Placement, own)
	}
	switch {
	case p.order != braid.OrderNiagara && s.Instances != 0:
		return fmt.Errorf("%d instances: protocol %s has one; niagara has more", s.Instances, s.Protocol)
	case s.Instances < 0 || s.Instances > braid.MaxInstances:
		return fmt.Errorf("%d instances: must be between 1 and %d", s.Instances, braid.MaxInstances)
	case p.order != braid.OrderNiagara && s.Leaders != "":
		return fmt.Errorf("leaders %s: protocol %s has one leader; niagara has more", s.Leaders, s.Protocol)
	case !oneOf(s.Leaders, "", braid.LeadersTogether, braid.LeadersSpread):
		return fmt.Errorf("leaders %q: must be %s or %s", s.Leaders, braid.LeadersTogether, braid.LeadersSpread)
	case !oneOf(s.Placement, "", braid.PlacementCopy, braid.PlacementCode, own):
		return fmt.Errorf("placement %q: must be %s or %s", s.Placement, braid.PlacementCopy, braid.PlacementCode)
	case s.Placement != "" && s.Placement != p.placement:
		return fmt.Errorf("placement %s: protocol %s is placement %s", s.Placement, s.Protocol, p.placement)
	case s.CodeK < 0 || s.CodeK != 0 && p.placement == braid.PlacementCopy:
		return fmt.Errorf("%d fragments: protocol %s makes none%s", s.CodeK, s.Protocol, s.unlessCoded(p.order))
	}
	o.Order, o.Placement, o.CodeK = p.order, p.placement, s.CodeK
	o.Instances, o.Leaders = s.Instances, s.Leaders
	return nil
}

func (s Shape) unlessCoded(order string) string {
	if order == braid.OrderNiagara {
		return " with placement " + braid.PlacementCopy
	}
	return ""
}

// Only returns the shape without what the protocol does not have.
func (s Shape) Only() Shape {
	p := shapes[s.Protocol]
	if p.order != braid.OrderNiagara {
		s.Instances, s.Leaders, s.Placement = 0, "", ""
	} else {
		p.placement = cmp.Or(s.Placement, p.placement)
	}
	if !oneOf(p.placement, braid.PlacementCode, braid.PlacementRS) {
		s.CodeK = 0
	}
	return s
}

// flags are those of a server that is set up so; its protocol is said elsewhere.
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
	return flags
}

func oneOf(s string, some ...string) bool { return slices.Contains(some, s) }

// Spread reports whether the members share the leaders, so that clients should propose at
// all of them: each finds a leader beside it. Otherwise one member leads all instances.
func (s Shape) Spread() bool {
	if s.Leaders == "" { // as braid.Options has it
		return shapes[s.Protocol].order == braid.OrderNiagara && s.Placement == braid.PlacementCode
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
	if s.Spread() {
		return len(leaders) == min(len(status.Instances), voters)
	}
	return len(leaders) == 1
}
