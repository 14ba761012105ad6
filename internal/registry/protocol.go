package registry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// Protocol is a protocol that can be chosen by name.
type Protocol struct {
	Name string // as the flag --protocol has it
	Does string // a few words for help
	Core *protocol.Info
	// Own are the core's own settings that the protocol has by its name. Without are those that it cannot have.
	Own     setting.Values
	Without []string
	// Orders and Placements are those in which it runs, its own first. Both have at least one.
	Orders     []order.Kind
	Placements []protocol.Placement
	// Leaders say which members can lead its instances, its own first; nil: no order of it has several.
	Leaders []protocol.Leaders
	// OnlyFor says for what alone the protocol is there, and why, if it does not serve etcd's API;
	// else it is empty.
	OnlyFor string
	// Quorums returns how many voters elect, and how many commit a body of k fragments. nil:
	// majorities.
	Quorums func(voters, k int) (quorum int, err error)
}

// All returns the protocols in the order in which help names them. The caller must not change them.
func All() []*Protocol { return list }

// Find returns the protocol with that name, or nil.
func Find(name string) *Protocol {
	i := slices.IndexFunc(list, func(p *Protocol) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return list[i]
}

// Cores returns the cores of all protocols, each once.
func Cores() (cores []*protocol.Info) {
	for _, p := range list {
		if !slices.Contains(cores, p.Core) {
			cores = append(cores, p.Core)
		}
	}
	return cores
}

// Names returns the names of all protocols.
func Names() []string { return names(func(*Protocol) bool { return true }) }

// Serving returns the names of the protocols that serve etcd's API.
func Serving() []string { return names((*Protocol).Serves) }

// Mapping are the names of the protocols over which a map of independent keys can be served: those of Serving, and
// those that order only commands with a key in common.
func Mapping() []string {
	return names(func(p *Protocol) bool { return p.Serves() || p.Core.Judged.ByKey || p.Keyed("") })
}

func names(keep func(*Protocol) bool) (names []string) {
	for _, p := range list {
		if keep(p) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Serves reports whether the protocol serves etcd's API.
func (p *Protocol) Serves() bool { return p.OnlyFor == "" }

// OrderOf is Order for a number of instances, 0: the protocol's own. Several instances of a protocol that has no other
// name for them are merged.
func (p *Protocol) OrderOf(wish order.Kind, instances int) (order.Kind, error) {
	if wish == "" && instances > 1 && slices.Contains(p.Orders, order.KindNiagara) &&
		p.Canonical(order.KindNiagara, p.Placements[0], p.Own) == p {
		wish = order.KindNiagara
	}
	return p.Order(wish)
}

// Order returns the order that is wished for, or with "" the protocol's own. An order in which the
// protocol does not run is a [*ChoiceError].
func (p *Protocol) Order(wish order.Kind) (order.Kind, error) {
	return choose(p, "order", wish, p.Orders)
}

// Placement returns the placement that is wished for, or with "" the protocol's own. A placement in
// which the protocol does not run is a [*ChoiceError].
func (p *Protocol) Placement(wish protocol.Placement) (protocol.Placement, error) {
	return choose(p, "placement", wish, p.Placements)
}

func choose[T ~string](p *Protocol, what string, wish T, may []T) (T, error) {
	switch {
	case wish == "":
		return may[0], nil
	case slices.Contains(may, wish):
		return wish, nil
	}
	e := &ChoiceError{Protocol: p.Name, What: what, Wish: string(wish)}
	for _, m := range may {
		e.May = append(e.May, string(m))
	}
	return "", e
}

// Merges reports whether the protocol's own order makes one log of several instances.
func (p *Protocol) Merges() bool { return p.Orders[0] == order.KindNiagara }

// Grows reports whether a log of the protocol can be merged from another number of instances later.
func (p *Protocol) Grows() bool {
	c := Choice{Protocol: p, Order: p.Orders[0], Placement: p.Placements[0]}
	return c.Grows()
}

// Keyed reports whether there is no global log in the order that is wished for ("": the protocol's own):
// keys are hashed over the instances, and each has an order of its own.
func (p *Protocol) Keyed(wish order.Kind) bool {
	kind, err := p.Order(wish)
	return err == nil && kind == order.KindKeyed
}

// Moves reports whether an instance moves to the member that asks for its commands: then it is no fault that its leader
// changes, and no member is preferred.
func (p *Protocol) Moves() bool { return len(p.Leaders) > 0 && p.Leaders[0] == protocol.LeadersBegin }

// Several reports whether there are several instances in the protocol's own order.
func (p *Protocol) Several() bool { return p.Merges() || p.Keyed("") }

// Canonical returns the protocol with p's core whose name says most of this order, this placement and some of the own
// settings: raft with lanes is lcr, with several instances niagara, and otherwise with placement code craft.
func (p *Protocol) Canonical(o order.Kind, place protocol.Placement, own setting.Values) *Protocol {
	best, most := p, -1
	for _, q := range list {
		if q.Core != p.Core || !slices.Contains(q.Orders, o) || !slices.Contains(q.Placements, place) ||
			q.Own.Over(own) != own || q.Own.Over(p.Own) != q.Own {
			continue
		}
		if says := q.says(o, place); says > most || says == most && q == p {
			best, most = q, says
		}
	}
	return best
}

// says is how much a protocol's name says of a log: most are its own settings, then the order.
func (p *Protocol) says(o order.Kind, place protocol.Placement) (n int) {
	if !p.Own.IsZero() {
		n = 4
	}
	if p.Orders[0] == o {
		n += 2
	}
	if p.Placements[0] == place {
		n++
	}
	return n
}

// Told is the name of the protocol's core, as members compare it and directories record it.
func (p *Protocol) Told() string {
	name, _ := p.Core.Told(p.Own)
	return name
}

// CoreOf returns the core that directories record by a name, or nil.
func CoreOf(name string) *protocol.Info {
	for _, c := range Cores() {
		if c.Known(name) {
			return c
		}
	}
	return nil
}

// Merged reports whether instances of a core can be merged into one log.
func Merged(core *protocol.Info) bool {
	return slices.ContainsFunc(list, func(p *Protocol) bool {
		return p.Core == core && slices.Contains(p.Orders, order.KindNiagara)
	})
}

// Coded reports whether bodies of a core can be in fragments, if a setting says so.
func Coded(core *protocol.Info) bool {
	return slices.ContainsFunc(list, func(p *Protocol) bool {
		return p.Core == core && slices.Contains(p.Placements, protocol.PlacementCode)
	})
}

// Tolerates is how many of the voters may crash without an acknowledged write being lost, and with
// the others still serving. k is how many fragments make a body whole, where quorums depend on it.
func (p *Protocol) Tolerates(voters, k int) int {
	if p.Quorums == nil {
		return (voters - 1) / 2
	}
	q, err := p.Quorums(voters, k)
	if err != nil {
		return 0
	}
	return voters - q
}

// QuorumsOf are the quorums of settings, which are complete. The error is a [*quorum.FitError] if they do not fit a
// given number of voters, 0: not asked, or their zones; nil: none has one.
func QuorumsOf(own setting.Values, voters int, zones []string) (quorum.System, error) {
	y := quorum.Setting.In(own)
	if voters > 0 {
		return y, y.Fits(voters, zones)
	}
	return y, nil
}

// ChoiceError is quorums, an order or a placement in which a protocol does not run. Nothing was started.
type ChoiceError struct {
	Protocol, What, Wish string
	May                  []string
}

func (e *ChoiceError) Error() string {
	return fmt.Sprintf("%s %q is not for protocol %s; there is: %s", e.What, e.Wish, e.Protocol, strings.Join(e.May, ", "))
}
