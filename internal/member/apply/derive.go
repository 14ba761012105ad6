package apply

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// Derive says that instances may have derived state, and begins it where the snapshot stands that the
// applier began with.
func (a *Applier) Derive(derive member.Derive, meta *member.Meta) error {
	all, err := meta.Derived(derive)
	if err != nil {
		return err
	}
	a.derive = derive
	a.setDerived(all)
	return nil
}

func (a *Applier) setDerived(all []protocol.Derived) {
	for i := range all {
		a.Instances[i].derived = all[i]
	}
}

// Sections are what the active instances derived from their logs, as far as these are applied.
func (a *Applier) Sections() (all []member.SectionState) {
	if a.derive == nil {
		return nil
	}
	at := a.order.Cursor()
	for i := range a.Instances {
		if in := &a.Instances[i]; in.derived != nil && at.Point(in.Instance).Index > 0 {
			if s := in.derived.Section(); s.Name != "" {
				all = append(all, member.SectionState{Instance: in.Instance, Section: s})
			}
		}
	}
	return all
}
