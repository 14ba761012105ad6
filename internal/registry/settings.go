package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/braidlog/braid/protocol/setting"
)

// Settings are the own settings of all protocols, each once.
func Settings() setting.Table { return settingsOf(func(*Protocol) bool { return true }) }

// ServerSettings are the own settings of the protocols that serve etcd's API.
func ServerSettings() setting.Table { return settingsOf((*Protocol).Serves) }

func settingsOf(keep func(*Protocol) bool) (all setting.Table) {
	for _, p := range list {
		if keep(p) {
			all = setting.Union(all, p.settings())
		}
	}
	return all
}

// Complete checks the protocol's own settings and returns them in normal form. The error is a [*setting.Error].
func (p *Protocol) Complete(v setting.Values) (setting.Values, error) {
	v, err := p.settings().Complete(v.Over(p.Own))
	if e := (*setting.Error)(nil); errors.As(err, &e) && p.settings().Find(e.Name) == nil {
		if has := Having(e.Name); len(has) > 0 {
			err = &setting.Error{Name: e.Name, Text: e.Text, Detail: fmt.Sprintf("only %s can have it, and not %s",
				List(has), p.Name)}
		}
	}
	return v, err
}

// settings are the core's own settings that the protocol can have.
func (p *Protocol) settings() setting.Table {
	t := p.Core.Settings
	t.Rows = slices.DeleteFunc(slices.Clone(t.Rows), func(r setting.Any) bool {
		return slices.Contains(p.Without, r.About().Name)
	})
	return t
}

// Having are the names of the protocols that have a setting.
func Having(name string) []string {
	return names(func(p *Protocol) bool { return p.settings().Find(name) != nil })
}

// ServersHaving are the names of those that serve etcd's API.
func ServersHaving(name string) []string {
	return slices.DeleteFunc(Having(name), func(n string) bool { return !Find(n).Serves() })
}

// List joins names with commas and "and".
func List(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
