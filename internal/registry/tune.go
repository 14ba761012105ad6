package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// Tunable describes a setting of a protocol in a running cluster.
type Tunable struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Default string `json:"default"`
	Help    string `json:"help"`
	// Waits says what a change of the setting waits for, or if Fixed, why it cannot be changed.
	Waits string `json:"waits"`
	Fixed bool   `json:"fixed"`
}

// whole is the protocol with which a cluster can be tuned to everything that its core can do in its order: raft is
// also craft, lcr and niagara.
func (c *Choice) whole() *Protocol {
	i := slices.IndexFunc(list, func(p *Protocol) bool {
		return p.Core == c.Core && p.Own.IsZero() && slices.Contains(p.Orders, c.Order) &&
			slices.Contains(p.Placements, c.Placement)
	})
	if i < 0 {
		return c.Protocol
	}
	return list[i]
}

// table has the settings that the cluster can have.
func (c *Choice) table() setting.Table { return setting.Union(common.Settings, c.whole().settings()) }

// rows are those that a server can have.
func (c *Choice) rows() []setting.Any {
	return slices.DeleteFunc(c.table().Rows, func(r setting.Any) bool { return r.About().Experiment })
}

// fixed reports whether a running cluster keeps a setting.
func (c *Choice) fixed(a *setting.About) bool {
	return !a.Change.Tunable() || c.Core.Judged.Fixed || c.Keeps() && resized(a)
}

// resized reports whether a setting changes with the number of instances.
func resized(a *setting.About) bool {
	return a.Name == common.Instances.Name || a.Name == common.Leaders.Name
}

// stays says why a log keeps its number of instances.
func (c *Choice) stays() string {
	return "protocol " + c.Name + " keeps the instances with which it began: only a switch to it changes them"
}

// Names are the settings that can be changed while the cluster runs.
func (c *Choice) Names() (names []string) {
	for _, r := range c.rows() {
		if a := r.About(); !c.fixed(&a) {
			names = append(names, a.Name)
		}
	}
	return names
}

// Texts are the texts of these settings, defaults too. The values are complete.
func (c *Choice) Texts(v setting.Values) map[string]string {
	t, texts := c.table(), map[string]string{}
	for _, name := range c.Names() {
		texts[name] = t.Text(name, v)
	}
	return texts
}

// Tunables describes all settings, with their values in a running cluster, which are complete.
func (c *Choice) Tunables(v setting.Values) (all []Tunable) {
	t, standard := c.table(), c.standard(v)
	for _, r := range c.rows() {
		a := r.About()
		row := Tunable{Name: a.Name, Value: t.Text(a.Name, v), Default: t.Text(a.Name, standard), Help: a.Help,
			Waits: a.Change.Waits(), Fixed: c.fixed(&a)}
		if c.Core.Judged.Fixed {
			row.Waits = "it is fixed: protocol " + c.Name + " keeps the settings that it began with"
		}
		if row.Fixed && c.Keeps() && resized(&a) {
			row.Waits = c.stays()
		}
		all = append(all, row)
	}
	return all
}

// standard are the defaults of all settings in a running cluster, with the number of instances. Some depend on the
// order with which the log began. That of leaders depends also on the placement and the number of instances in v.
func (c *Choice) standard(v setting.Values) setting.Values {
	whole, instances := c.whole(), max(1, common.Instances.In(v))
	s, err := whole.Choose(common.Order.Set(setting.Values{}, string(c.Order)), instances)
	if err != nil {
		return setting.Values{} // a cluster without any flag would have the same error
	}
	merged := Choice{Protocol: whole, Order: c.Order, Placement: common.Placement.In(v)}
	if c.Order == order.KindSingle {
		s.Values, merged.Order = common.Instances.Set(s.Values, 1), order.KindNiagara
	}
	if len(whole.Leaders) > 0 && (c.Order != order.KindSingle || instances > 1) {
		if shared, err := merged.instances(setting.Values{}, instances); err == nil {
			s.Values = common.Leaders.Set(s.Values, common.Leaders.In(shared))
		}
	}
	return s.Values
}

// Tune returns the values of a profile after a change of some settings, and the number of instances if that is to be
// another one, else 0. base are the values of the profile before. A text is that of a flag or of a profile; "" is the
// default. With placement copy, settings that are for another placement and are not named return to their defaults.
// The error is a [*setting.Error].
func (c *Choice) Tune(base setting.Values, set map[string]string) (next setting.Values, instances int, err error) {
	if text, given := set[common.Instances.Name]; given && c.Keeps() {
		return base, 0, &setting.Error{Name: common.Instances.Name, Text: text, Detail: c.stays()}
	}
	if next, err = c.with(base, set); err == nil {
		next, err = c.fix(base, next)
	}
	if err != nil {
		return base, 0, err
	}
	chosen, err := c.rechoose(next, set)
	if wrong := (*ChoiceError)(nil); err != nil && errors.As(err, &wrong) {
		err = &setting.Error{Name: wrong.What, Text: wrong.Wish, Detail: "it is " + strings.Join(wrong.May, " or ")}
	}
	if err != nil {
		return base, 0, err
	}
	if _, given := set[common.Instances.Name]; given {
		instances = max(1, common.Instances.In(chosen.Values))
	}
	return chosen.Profile(), instances, nil
}

// fix returns the next values with the fixed settings of a cluster. The error names one that would change. A default
// may depend on the cluster, and is no change then.
func (c *Choice) fix(base, next setting.Values) (setting.Values, error) {
	t, standard := c.table(), c.standard(base)
	for _, r := range t.Rows {
		a := r.About()
		if !c.fixed(&a) {
			continue
		}
		if to := t.Text(a.Name, next.Over(standard)); to != t.Text(a.Name, base.Over(standard)) {
			why := a.Change.Waits()
			if c.Keeps() && resized(&a) {
				why = c.stays()
			}
			return base, &setting.Error{Name: a.Name, Text: to, Detail: why}
		}
		next = setting.Table{Rows: []setting.Any{r}}.Only(base).Over(next.Without(a.Name))
	}
	return next, nil
}

// rechoose checks and completes values together. The one instance with which a log began may be joined by others. Then
// instances and leaders are those of niagara, with its defaults.
func (c *Choice) rechoose(v setting.Values, set map[string]string) (Choice, error) {
	if c.Order != order.KindSingle || !c.Grows() {
		return c.whole().Choose(v, 1)
	}
	chosen, err := c.whole().Choose(v.Without(common.Instances.Name).Without(common.Leaders.Name), 1)
	if err != nil {
		return chosen, err
	}
	merged := Choice{Protocol: c.whole().Canonical(order.KindNiagara, chosen.Placement, setting.Values{}),
		Order: order.KindNiagara, Placement: chosen.Placement}
	instances, leaders := max(1, common.Instances.In(v)), common.Leaders.In(v)
	shared, err := merged.instances(common.Instances.Set(v, instances), 1)
	if err != nil {
		return chosen, err
	}
	if _, resized := set[common.Instances.Name]; resized {
		switch _, given := set[common.Leaders.Name]; {
		case instances > 1 && leaders == "":
			leaders = common.Leaders.In(shared)
		case instances == 1 && !given:
			leaders = ""
		}
	}
	chosen.Values = common.Leaders.Set(common.Instances.Set(chosen.Values, instances), leaders)
	return chosen, nil
}

// with returns values with the texts of some settings. They are not checked together.
func (c *Choice) with(v setting.Values, set map[string]string) (setting.Values, error) {
	t := c.table()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		r := t.Find(name)
		if r == nil {
			return v, &setting.Error{Name: name, Detail: c.missing(name)}
		}
		if set[name] == "" {
			v = v.Without(name)
			continue
		}
		one, err := parse(r, name, set[name])
		if err != nil {
			return v, err
		}
		v = one.Over(v.Without(name))
	}
	if _, given := set[common.Placement.Name]; given {
		v = uncoded(v, set)
	}
	return v, nil
}

// uncoded are values whose placement was given, without settings that only placement code has and that were not given,
// if it is another one.
func uncoded(v setting.Values, given map[string]string) setting.Values {
	if common.Placement.In(v) == protocol.PlacementCode {
		return v
	}
	for _, r := range coded {
		if name := r.About().Name; given[name] == "" {
			v = v.Without(name)
		}
	}
	return v
}

// missing explains why there is no such setting.
func (c *Choice) missing(name string) string {
	if has := ServersHaving(name); len(has) > 0 {
		return fmt.Sprintf("only %s can have it", List(has))
	}
	rows := setting.Union(common.Settings, ServerSettings()).Rows
	if i := slices.IndexFunc(rows, func(r setting.Any) bool { return isPart(r, name) }); i >= 0 {
		return "it is a part of " + rows[i].About().Name
	}
	if name != "protocol" {
		return "there is no such setting of protocol " + c.Name
	}
	if c.Serves() {
		return "switch changes it, not tune"
	}
	return setting.Never.Waits()
}

// isPart reports whether a flag has this name and sets a part of a setting.
func isPart(r setting.Any, name string) bool {
	var v setting.Values
	return slices.ContainsFunc(setting.Table{Rows: []setting.Any{r}}.Flags(&v, true),
		func(f setting.Flag) bool { return f.Name == name })
}

// parse returns the value of one setting, from its text in a profile, or from the text of its flag.
func parse(r setting.Any, name, text string) (v setting.Values, err error) {
	table := setting.Table{Rows: []setting.Any{r}}
	given, err := setting.Parse(name + "=" + text)
	if err != nil {
		return v, err
	}
	if v, err = table.Complete(given); err == nil {
		return v, nil
	}
	for _, f := range table.Flags(&v, true) {
		if f.Name == name && f.Set(text) == nil {
			return table.Complete(v)
		}
	}
	return v, err
}

// WithInstances are values with the number of instances, which is not part of a profile: the plan in the log has it.
func WithInstances(v setting.Values, n int) setting.Values { return common.Instances.Set(v, n) }

// Profile are the values of a profile: all except the number of instances.
func (c *Choice) Profile() setting.Values { return c.Values.Without(common.Instances.Name) }

// Under is the choice under the values of a profile, with the name that says it, in a log of this many instances. A
// merged log of one instance has the name of one that is not merged.
func (c *Choice) Under(v setting.Values, instances int) Choice {
	now := *c
	now.Values, now.Placement = v, common.Placement.In(v)
	if instances > 1 && c.Order == order.KindSingle {
		now.Order = order.KindNiagara
	}
	named := now.Order
	if instances == 1 && named == order.KindNiagara {
		named = order.KindSingle
	}
	now.Protocol = c.whole().Canonical(named, now.Placement, now.Own())
	return now
}
