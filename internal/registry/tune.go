package registry

import (
	"slices"

	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// Tunable describes a setting of a protocol in a running cluster.
type Tunable struct {
	Name, Value, Default, Help string
	// Waits says what a change of the setting waits for, or if Fixed, why it cannot be changed.
	Waits string
	Fixed bool
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

// rows are the settings that a server can have, those of all protocols first.
func (c *Choice) rows() []setting.Any {
	all := slices.Concat(common.Settings.Rows, c.whole().settings().Rows)
	return slices.DeleteFunc(all, func(r setting.Any) bool { return r.About().Experiment })
}

// Names are the settings that can be changed while the cluster runs.
func (c *Choice) Names() (names []string) {
	for _, r := range c.rows() {
		if a := r.About(); a.Change.Tunable() {
			names = append(names, a.Name)
		}
	}
	return names
}

// Texts are the texts of these settings, defaults too. The values are complete.
func (c *Choice) Texts(v setting.Values) map[string]string {
	t, texts := c.Table(), map[string]string{}
	for _, name := range c.Names() {
		texts[name] = t.Text(name, v)
	}
	return texts
}

// Tunables describes all settings, with their values in a running cluster, which are complete.
func (c *Choice) Tunables(v setting.Values) (all []Tunable) {
	t := c.Table()
	for _, r := range c.rows() {
		a := r.About()
		row := Tunable{Name: a.Name, Value: t.Text(a.Name, v), Default: a.Default, Help: a.Help, Waits: a.Change.Waits(),
			Fixed: !a.Change.Tunable()}
		if c.Core.Judged.Fixed {
			row.Waits, row.Fixed = "protocol "+c.Name+" keeps the settings that it began with", true
		}
		all = append(all, row)
	}
	return all
}

// WithInstances are values with the number of instances, which are not part of a profile: the plan in the log has them.
func WithInstances(v setting.Values, n int) setting.Values { return common.Instances.Set(v, n) }

// Profile are the values of a profile: all except the number of instances.
func (c *Choice) Profile() setting.Values { return c.Values.Without(common.Instances.Name) }
