package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// Switching is what changes the protocol of a running cluster.
type Switching struct {
	// To is the protocol behind the change, in a log of this many instances.
	To        Choice
	Instances int
	// Tune are the settings that are tuned first, as [Choice.Tune] takes them; empty: none.
	Tune map[string]string
	// Seal then ends the log, and begins the next one. The leader fills in its Members. nil: Tune is enough.
	Seal *protocol.Seal
}

// Nothing reports whether all is as it is to be.
func (s *Switching) Nothing() bool { return len(s.Tune) == 0 && s.Seal == nil }

// Sealed reports whether a log of this many instances, under the active profile, is behind the seal.
func (s *Switching) Sealed(active *protocol.Profile, instances int) bool {
	return s.Seal != nil && s.Seal.Brought(active, instances, s.To.Keeps())
}

// Of is the choice for the log under a profile: c, unless a seal has brought another core or another order. It has the
// settings with which that part of the log began, as c has those with which the first one began.
func (c *Choice) Of(p *protocol.Profile) Choice {
	if p.Core == "" {
		return *c
	}
	o := order.Kind(common.Order.In(p.Values))
	if p.Core == c.Core.Name && o == c.Order {
		return *c
	}
	i := slices.IndexFunc(list, func(q *Protocol) bool {
		return q.Core.Name == p.Core && q.Own.IsZero() && slices.Contains(q.Orders, o)
	})
	if i < 0 {
		return *c
	}
	return Choice{Protocol: list[i], Order: o, Placement: common.Placement.In(p.Values), Values: p.Values}
}

// At is the choice under a profile, with the name that says it, in a log of this many instances.
func (c *Choice) At(p *protocol.Profile, instances int) Choice {
	if p.Version == 0 {
		return *c
	}
	of := c.Of(p)
	return of.Under(p.Values, instances)
}

// Switch returns what changes a log under a profile, of this many instances, to a protocol with some settings. A text
// is that of a flag or of a profile; "" is the default. Settings that are not given keep their values, if the protocol
// has them, except for those that its name says. The error is a [*setting.Error].
func (c *Choice) Switch(p *protocol.Profile, instances int, name string, set map[string]string) (Switching, error) {
	now, to := c.At(p, instances), Find(name)
	refuse := func(why string) (Switching, error) {
		return Switching{}, &setting.Error{Name: "protocol", Text: name, Detail: why}
	}
	switch {
	case to == nil:
		return refuse("it is one of " + List(Serving()))
	case !to.Serves():
		return refuse("it is for " + to.OnlyFor)
	case !now.Serves():
		return refuse(fmt.Sprintf("protocol %s cannot be left: it is for %s", now.Name, now.OnlyFor))
	}
	wish, err := now.wish(to, instances, set)
	if wrong := (*ChoiceError)(nil); errors.As(err, &wrong) {
		err = &setting.Error{Name: wrong.What, Text: wrong.Wish, Detail: "it is " + strings.Join(wrong.May, " or ")}
	}
	switch {
	case err != nil:
		return Switching{}, err
	case wish.Order == order.KindNiagara && wish.Instances() == 1:
		return Switching{}, &setting.Error{Name: common.Instances.Name, Text: "1",
			Detail: "with one instance the protocol is " + wish.Under(wish.Values, 1).Name}
	case wish.Core == now.Core && wish.sealed() == now.sealed() && !now.resizes(&wish, instances):
		return c.retune(p, instances, &wish)
	}
	if err := c.decodes(p, &wish); err != nil {
		return Switching{}, err
	}
	return c.seal(p, &wish)
}

// resizes reports whether a wish is a number of instances that a log of this many can only have behind a seal.
func (c *Choice) resizes(wish *Choice, instances int) bool {
	return c.Keeps() && wish.Instances() != instances
}

// wish is a protocol with given settings, and those that it keeps of c's.
func (c *Choice) wish(to *Protocol, instances int, set map[string]string) (Choice, error) {
	v := c.kept(to)
	if (to.Merges() || to.Core == c.Core && c.Keeps()) && c.Order == order.KindNiagara && instances > 1 {
		v = common.Instances.Set(v, instances)
	}
	rows := setting.Union(common.Settings, to.settings()).Rows
	for _, name := range slices.Sorted(maps.Keys(set)) {
		given, err := to.given(rows, v, name, set[name])
		if err != nil {
			return Choice{}, err
		}
		v = given
	}
	if set[common.Placement.Name] != "" {
		v = uncoded(v, set)
	}
	return to.Choose(v, 1)
}

// kept are the values of c that another protocol keeps, without those that its name says.
func (c *Choice) kept(to *Protocol) setting.Values {
	v := setting.Union(common.Settings, to.settings()).Only(c.Values)
	drop := []setting.Any{common.Order, common.Instances, lane.On}
	place := common.Placement.In(v)
	if !slices.Contains(to.Placements, place) || to.Canonical(to.Orders[0], place, to.Own) != to {
		drop, place = append(drop, common.Placement), to.Placements[0]
	}
	if place != protocol.PlacementCode {
		drop = append(drop, coded...)
	}
	if !to.Merges() || c.Order != order.KindNiagara || !slices.Contains(to.Leaders, common.Leaders.In(v)) {
		drop = append(drop, common.Leaders)
	}
	for _, r := range drop {
		v = v.Without(r.About().Name)
	}
	return v
}

// given returns values with the text of a setting, or of a flag that is a part of one. rows are the settings that the
// protocol has.
func (p *Protocol) given(rows []setting.Any, v setting.Values, name, text string) (setting.Values, error) {
	i := slices.IndexFunc(rows, func(r setting.Any) bool { return r.About().Name == name || isPart(r, name) })
	if i < 0 {
		return v, &setting.Error{Name: name, Text: text, Detail: p.without(name)}
	}
	r := rows[i]
	a := r.About()
	switch {
	case a.Experiment:
		return v, &setting.Error{Name: name, Text: text, Detail: "it is for measurements alone"}
	case r == setting.Any(common.Order):
		return v, &setting.Error{Name: name, Text: text, Detail: "the protocol says it"}
	case a.Name == name && text == "":
		return v.Without(name), nil
	case a.Name == name:
		one, err := parse(r, name, text)
		return one.Over(v.Without(name)), err
	}
	for _, f := range (setting.Table{Rows: rows[i : i+1]}).Flags(&v, false) {
		if f.Name != name {
			continue
		}
		if f.IsBoolFlag() && text == "" {
			text = "false"
		}
		if err := f.Set(text); err != nil {
			return v, err
		}
	}
	return v, nil
}

// without explains why the protocol has no such setting.
func (p *Protocol) without(name string) string {
	if name == "protocol" {
		return "it is named before the settings"
	}
	all := ServerSettings().Rows
	if i := slices.IndexFunc(all, func(r setting.Any) bool { return isPart(r, name) }); i >= 0 {
		return fmt.Sprintf("only %s can have it", List(ServersHaving(all[i].About().Name)))
	}
	return "there is no such setting of protocol " + p.Name
}

// sealed are the values of settings that change only where the log is sealed.
func (c *Choice) sealed() setting.Values {
	t := c.Table()
	t.Rows = slices.DeleteFunc(slices.Clone(t.Rows), func(r setting.Any) bool {
		return r.About().Change != setting.Sealed
	})
	return t.Only(c.Values)
}

// retune returns the tune by which a log under a profile, of this many instances, becomes what is wished for, by the
// same core.
func (c *Choice) retune(p *protocol.Profile, instances int, wish *Choice) (s Switching, err error) {
	of := c.Of(p)
	t, merges := of.table(), wish.Order == order.KindNiagara
	s.Tune = map[string]string{}
	if of.Grows() {
		s.Tune[common.Instances.Name] = strconv.Itoa(wish.Instances())
	}
	for _, name := range of.Names() {
		if name == common.Instances.Name || name == common.Leaders.Name && !merges {
			continue
		}
		if text := t.Text(name, wish.Values); text != t.Text(name, p.Values) {
			s.Tune[name] = text
		}
	}
	next, n, err := of.Tune(p.Values, s.Tune)
	if err != nil {
		return Switching{}, err
	}
	if next == p.Values && (n == 0 || n == instances) {
		s.Tune = nil
	}
	s.Instances = max(1, n)
	s.To = of.Under(next, s.Instances)
	return s, nil
}

// seal returns the seal by which a log under a profile becomes what is wished for. Lanes are turned off first.
func (c *Choice) seal(p *protocol.Profile, wish *Choice) (Switching, error) {
	s := Switching{To: *wish, Instances: wish.Instances()}
	s.Seal = &protocol.Seal{Instances: s.Instances, Merged: wish.Order == order.KindNiagara,
		Profile: protocol.Profile{Version: p.Version + 1, Core: wish.Core.Name, Values: wish.Profile()}}
	if lane.On.In(p.Values) {
		s.Tune = map[string]string{lane.On.Name: "false"}
		s.Seal.Profile.Version++
	}
	return s, nil
}

// decodes refuses quorums that are not majorities while bodies are in fragments, or may be: fewer members than a
// majority may have to make them whole.
func (c *Choice) decodes(p *protocol.Profile, wish *Choice) error {
	y := quorum.Setting.In(wish.Values)
	if y.Majority() {
		return nil
	}
	refuse := func(why string) error {
		return &setting.Error{Name: quorum.Setting.Name, Text: y.String(), Detail: why}
	}
	oldest := p
	for i := range slices.Backward(p.Earlier) {
		e := &p.Earlier[i]
		if common.Placement.In(e.Values) == protocol.PlacementCode {
			return refuse(fmt.Sprintf("large values may be in fragments, as profile %d had placement code: only "+
				"majorities make them whole", e.Version))
		}
		oldest = e
	}
	switch {
	case common.Placement.In(p.Values) == protocol.PlacementCode:
		return refuse("large values are in fragments, which only majorities make whole")
	case oldest.Version > 1 && (oldest.Core != "" || slices.Contains(c.whole().Placements, protocol.PlacementCode)):
		return refuse(fmt.Sprintf("large values may be in fragments, as profiles before %d are not known any more: "+
			"only majorities make them whole", oldest.Version))
	}
	return nil
}
