package transport

// verify returns why there may be no link with a member of this identity. It changes nothing.
func (t *Transport) verify(id uint64, who, expects Who) error {
	if t.opt.Verify == nil {
		return nil
	}
	return t.opt.Verify(id, who, expects)
}

// identityRefused reports a member that verify refuses. Perhaps this member is not the one that was known, and stops.
// So it is only called if the other member is not known to have another log: see refuseUnrelated.
func (t *Transport) identityRefused(id uint64, who, expects Who) {
	if t.opt.Refused != nil {
		t.opt.Refused(id, who, expects)
	}
}

// linked records that there is a link with a member now, before anything is read from it.
func (t *Transport) linked(id uint64, who Who) error {
	if t.opt.Linked == nil {
		return nil
	}
	return t.opt.Linked(id, who)
}

// expects returns who this member expects another one to be.
func (t *Transport) expects(id uint64) (w Who) {
	if t.opt.Expects != nil {
		w = t.opt.Expects(id)
	}
	return w
}
