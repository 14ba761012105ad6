package scale

import (
	"slices"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol"
)

// Steps are the costs of a protocol's code on a member of a cluster with Members members. Parts of a step, and of a
// message, are the entries that it adds, and those that it commits.
type Steps struct {
	Members int `json:"members"`

	Propose Cost `json:"propose"` // a batch is sealed and proposed to the core, or a skip is proposed
	// Messages are the costs of processing a message, by its type; the first one is protocol.FirstOwnType.
	Messages []Cost `json:"messages"`
	Durable  Cost   `json:"durable"` // an instance learns that its records are durable
	Tick     Cost   `json:"tick"`
	Wake     Cost   `json:"wake"`   // the core is woken at its request
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

// message returns the cost of processing a message of a type.
func (s *Steps) message(t protocol.MessageType) Cost {
	if i := int(t) - int(protocol.FirstOwnType); i >= 0 && i < len(s.Messages) {
		return s.Messages[i]
	}
	return Cost{}
}

// code identifies the code that a run executes, with its settings: costs are measured for each.
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

// stepsOf returns the costs of the code of a run. Costs are measured for some numbers of members, and interpolated or
// extrapolated linearly from the nearest two.
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

// between interpolates two measurements.
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
