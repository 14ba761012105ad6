package member

import (
	"github.com/braidlog/braid/protocol"
)

// Derive says that the instances have derived state, and begins it where the snapshot stands that the
// applier began with.
func (a *Applier) Derive(derive Derive, meta *Meta) error {
	all, err := meta.derived(derive)
	if err != nil {
		return err
	}
	a.derive = derive
	a.takeDerived(all)
	return nil
}

func (a *Applier) takeDerived(all []protocol.Derived) {
	for i := range all {
		a.Instances[i].derived = all[i]
	}
}

// Sections are what the instances in force derived from their logs, as far as these are applied.
func (a *Applier) Sections() (all []SectionState) {
	if a.derive == nil {
		return nil
	}
	at := a.order.Cursor()
	for i := range a.Instances {
		if in := &a.Instances[i]; in.derived != nil && at.Point(in.Instance).Index > 0 {
			all = append(all, SectionState{in.Instance, in.derived.Section()})
		}
	}
	return all
}
