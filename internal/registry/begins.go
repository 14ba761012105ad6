package registry

import (
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// Begins is the choice of instances that begin under a profile, with the profile's values; without a profile it is c.
// The error is a [*protocol.ProfileError]: this program does not know the core, or cannot have the values.
func (c *Choice) Begins(p *protocol.Profile) (Choice, error) {
	if p.Version == 0 {
		return *c, nil
	}
	of, o := c.Of(p), order.Kind(common.Order.In(p.Values))
	wrong := func(err error) (Choice, error) {
		return *c, &protocol.ProfileError{Version: p.Version, Err: err}
	}
	switch {
	case p.Core != "" && of.Core.Name != p.Core:
		return wrong(&setting.Error{Name: "protocol", Text: p.Core, Detail: "this program does not know it"})
	case p.Core != "" && o != "" && (o != of.Order || o == order.KindKeyed):
		return wrong(&setting.Error{Name: common.Order.Name, Text: string(o),
			Detail: "it is not for protocol " + of.Name})
	}
	var err error
	if of.Values, err = of.Table().Complete(p.Values); err != nil {
		return wrong(err)
	}
	return of, nil
}
