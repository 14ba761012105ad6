package registry

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// Choice is a protocol with everything that is set of it: its order and placement, the settings that all protocols
// have, and its own. Only [Protocol.Choose] makes one.
type Choice struct {
	*Protocol
	Order     order.Kind
	Placement protocol.Placement
	// Values are complete. Those of package common that depend on the protocol are among them.
	Values setting.Values
}

// Table has the settings of a profile: those that all protocols have, and the protocol's own.
func (c *Choice) Table() setting.Table { return setting.Union(common.Settings, c.Core.Settings) }

// Own are the protocol's own settings.
func (c *Choice) Own() setting.Values { return c.Core.Settings.Only(c.Values) }

// Instances is the number of instances with which a new cluster begins. It is at least 1, except where each of a number
// of members that is not known yet has one.
func (c *Choice) Instances() int {
	if c.Order == order.KindSingle {
		return 1
	}
	return common.Instances.In(c.Values)
}

// Grows reports whether other instances can join the one with which a log began, or leave. It is the same for all
// protocols that are profiles of one core. Where many members lead they cannot: a core that keeps bodies at their
// deciders would have to carry those of an instance that is retired to later members.
func (c *Choice) Grows() bool {
	return slices.Contains(c.whole().Orders, order.KindNiagara) && !c.Core.Judged.ManyLead
}

// Keeps reports whether a log that may be merged keeps its number of instances until it is sealed.
func (c *Choice) Keeps() bool { return Merged(c.Core) && !c.Grows() }

// As is the choice for a log with a profile that began under a recorded name of c's core, in an order, and if merged
// with this many instances. The settings that the profile has are not used.
func (c *Choice) As(core string, o order.Kind, begun int) (Choice, error) {
	own := c.Core.As(core, c.Own())
	now := Choice{Order: o, Placement: c.Placement}
	whole := Choice{Protocol: c.Protocol, Order: o, Placement: c.Placement}
	now.Protocol = whole.whole().Canonical(o, c.Placement, own)
	shared := common.Order.Set(common.Settings.Only(c.Values).Without(common.Instances.Name), string(o))
	if o == order.KindSingle {
		shared = shared.Without(common.Leaders.Name)
	} else {
		shared = common.Instances.Set(shared, begun)
	}
	shared, err := now.instances(shared, begun)
	now.Values = own.Over(shared)
	return now, err
}

// Began is the choice for a log that was sealed, whatever protocol c is of. The log began under a recorded name of a
// core, in an order, and if merged with this many instances. fixed are the texts of settings that never changed before
// the seal; "": it is not known. Of c only the settings of timing are used, and if c is of the core, what As uses.
func (c *Choice) Began(core string, o order.Kind, begun int, fixed map[string]string) (Choice, error) {
	base := *c
	if of := CoreOf(core); of != c.Core {
		i := slices.IndexFunc(list, func(p *Protocol) bool {
			return p.Core == of && p.Own.IsZero() && slices.Contains(p.Orders, o)
		})
		if i < 0 {
			return *c, &ChoiceError{Protocol: core, What: "order", Wish: string(o)}
		}
		var err error
		timing := common.Order.Set(common.Time.Only(c.Values), string(o))
		if base, err = list[i].Choose(timing, max(1, begun)); err != nil {
			return *c, err
		}
	}
	for name, text := range fixed {
		row := base.Core.Settings.Find(name)
		if row == nil || text == "" {
			continue
		}
		one, err := parse(row, name, text)
		if err != nil {
			return *c, err
		}
		base.Values = one.Over(base.Values.Without(name))
	}
	return base.As(core, o, begun)
}

// Groups is how many groups of keys there are; 0: there is one order of all keys.
func (c *Choice) Groups() int {
	if c.Order != order.KindKeyed {
		return 0
	}
	return c.Instances()
}

// Spread reports whether members share the leaders of the instances.
func (c *Choice) Spread() bool { return common.Leaders.In(c.Values).Apart() }

// roamingInstances is how many instances there are by default where they move to the members that use them. Each has
// some of the keys, which move together, so there are more than members.
const roamingInstances = 16

// Choose checks settings for a cluster that begins with a number of members, and fills in the defaults that depend on
// the protocol. The error is a [*setting.Error] or a [*ChoiceError].
func (p *Protocol) Choose(v setting.Values, members int) (c Choice, err error) {
	c = Choice{Protocol: p}
	shared, own := common.Settings.Only(v), common.Settings.Except(v)
	if shared, err = common.Settings.Complete(shared); err != nil {
		return c, err
	}
	if own, err = p.Complete(own); err != nil {
		return c, err
	}
	if c.Order, err = p.OrderOf(order.Kind(common.Order.In(shared)), common.Instances.In(shared)); err != nil {
		return c, err
	}
	if c.Placement, err = p.Placement(common.Placement.In(shared)); err != nil {
		return c, err
	}
	if c.Order == order.KindKeyed && lane.On.In(own) {
		return c, &setting.Error{Name: lane.On.Name, Text: "true", Detail: "lanes need one order of all commands"}
	}
	if fit := common.Fit.In(shared); fit == protocol.FitOn && !c.Serves() {
		return c, &setting.Error{Name: common.Fit.Name, Text: string(fit),
			Detail: fmt.Sprintf("protocol %s cannot be left: it is for %s", c.Name, c.OnlyFor)}
	}
	if c.Order == order.KindNiagara && c.Core.Merges != nil {
		if err := c.Core.Merges(own); err != nil {
			return c, err
		}
	}
	shared = common.Order.Set(shared, string(c.Order))
	shared = common.Placement.Set(shared, c.Placement)
	if shared, err = c.instances(shared, members); err != nil {
		return c, err
	}
	if shared, err = c.bodies(shared); err != nil {
		return c, err
	}
	c.Values = own.Over(shared)
	return c, nil
}

// instances checks and completes what concerns the instances and their leaders.
func (c *Choice) instances(v setting.Values, members int) (setting.Values, error) {
	n, leaders := common.Instances.In(v), common.Leaders.In(v)
	refuse := func(s setting.Any, format string, args ...any) (setting.Values, error) {
		name := s.About().Name
		return v, &setting.Error{Name: name, Text: common.Settings.Text(name, v), Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.Order == order.KindSingle && n > 1:
		return refuse(common.Instances, "protocol %s has one instance; niagara merges several", c.Name)
	case c.Order == order.KindSingle && leaders != "":
		return refuse(common.Leaders, "protocol %s has one leader; niagara has several", c.Name)
	case c.Order == order.KindSingle:
		return v, nil
	case c.Moves() && leaders != "" && leaders != protocol.LeadersBegin:
		return refuse(common.Leaders, "with protocol %s they move to the members that use them", c.Name)
	case leaders != "" && !slices.Contains(c.Leaders, leaders) && c.Core.Judged.ManyLead:
		return refuse(common.Leaders, "with protocol %s every member leads", c.Name)
	case leaders != "" && !slices.Contains(c.Leaders, leaders):
		return refuse(common.Leaders, "it is %s or %s", protocol.LeadersTogether, protocol.LeadersSpread)
	}
	standard := c.Leaders[0]
	switch {
	case c.Moves():
		n = cmp.Or(n, roamingInstances)
	case c.Order == order.KindKeyed:
		n = cmp.Or(n, members)
	default:
		n = cmp.Or(n, common.DefaultInstances)
		if c.Placement == protocol.PlacementCode { // bytes count most, and all network cards send
			standard = protocol.LeadersSpread
		}
	}
	leaders = cmp.Or(leaders, standard)
	if n > protocol.MaxInstances {
		return refuse(common.Instances, "there would be %d, one for each member; at most %d are possible", n,
			protocol.MaxInstances)
	}
	return common.Leaders.Set(common.Instances.Set(v, n), leaders), nil
}

// coded are the settings that only placement code has.
var coded = []setting.Any{common.CodeK, common.ExtraWhole, common.TrimWhole}

// bodies checks and completes what members keep of bodies.
func (c *Choice) bodies(v setting.Values) (setting.Values, error) {
	without := coded
	switch c.Placement {
	case protocol.PlacementCode:
		return v, nil
	case protocol.PlacementRS:
		v = common.CodeK.Set(v, cmp.Or(common.CodeK.In(v), RSFragments))
		without = without[1:]
	}
	for _, s := range without {
		name := s.About().Name
		if text, given := v.Get(name); given {
			return v, &setting.Error{Name: name, Text: text,
				Detail: fmt.Sprintf("placement %s has no use for it: it is for protocol craft, or another one with placement code",
					c.Placement)}
		}
	}
	return v, nil
}
