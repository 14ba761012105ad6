package scale

import (
	"slices"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol"
)

// Steps is what the code of a protocol costs on a member of a cluster of so many members. Parts of a step, and of a
// message, are the entries that it brings, and those that it commits.
type Steps struct {
	Members int `json:"members"`

	Propose Cost `json:"propose"` // a batch is sealed and given to the core, or a skip is proposed
	// Messages are what an instance does with a message, by its type; the first one is protocol.FirstOwnType.
	Messages []Cost `json:"messages"`
	Durable  Cost   `json:"durable"` // an instance learns that its disk is done
	Tick     Cost   `json:"tick"`
	Wake     Cost   `json:"wake"`   // the core is woken because it asked for that
	Frame    Cost   `json:"frame"`  // a message is built; each: entry
	Decode   Cost   `json:"decode"` // a received message is decoded; each: entry
	Apply    Cost   `json:"apply"`  // a commitment is merged and applied; each: entry
}

// cpu lists the costs.
func (s *Steps) cpu() []*Cost {
	all := []*Cost{&s.Propose, &s.Durable, &s.Tick, &s.Wake, &s.Frame, &s.Decode, &s.Apply}
	for i := range s.Messages {
		all = append(all, &s.Messages[i])
	}
	return all
}

// message is what an instance does with a message of a type.
func (s *Steps) message(t protocol.MessageType) Cost {
	if i := int(t) - int(protocol.FirstOwnType); i >= 0 && i < len(s.Messages) {
		return s.Messages[i]
	}
	return Cost{}
}

// code names the code that a run executes, and how: costs are measured for each.
func (c *Config) code() string {
	name := c.Protocol
	if p := registry.Find(c.Protocol); p != nil {
		for _, detour := range p.Core.Settings.Detours(c.Own) {
			name += ", " + detour
		}
	}
	if c.NoBatching {
		name += ", a message each"
	}
	return name
}

// stepsOf is what the code of a run costs. Costs are measured for some numbers of members. Between two of these they lie on
// the line through both, and beyond them on that of the nearest two.
func (c *Costs) stepsOf(of *Config) (Steps, bool) {
	known := c.Steps[of.code()]
	if len(known) == 0 {
		return Steps{}, false
	}
	at := slices.IndexFunc(known, func(s Steps) bool { return s.Members >= of.Nodes })
	switch {
	case len(known) == 1 || at == 0:
		return known[0].clone(), true
	case at < 0:
		at = len(known) - 1
	}
	return between(&known[at-1], &known[at], of.Nodes), true
}

func (s Steps) clone() Steps {
	s.Messages = slices.Clone(s.Messages)
	return s
}

// between is the line through two measurements.
func between(few, many *Steps, members int) Steps {
	out := many.clone()
	out.Members = members
	share := float64(members-few.Members) / float64(many.Members-few.Members)
	from, to := few.clone(), out.cpu()
	for i, c := range from.cpu() {
		v := to[i]
		v.Once = max(0, c.Once+(v.Once-c.Once)*share)
		v.Each = max(0, c.Each+(v.Each-c.Each)*share)
	}
	return out
}
