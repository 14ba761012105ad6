package transport

// Handshake has what a handshake sends of this member, and how it checks the other one. All fields are optional.
type Handshake struct {
	// Who names the data directory of this member; every handshake sends it.
	Who Who
	// Expects returns who this member expects another one to be; zero or nil: it knows no member by that id.
	Expects func(id uint64) Who
	// Verify decides about a member by its identity and by who it expects this one to be. If it returns an error, there
	// is no link. It changes nothing. Refused is called for a member that Verify refuses, unless that member is known to
	// have another log. Linked is called when there is a link, before anything is read from it. The record of the member
	// is durable when Linked returns. nil: every member is accepted. All four are called concurrently.
	Verify  func(id uint64, who, expects Who) error
	Refused func(id uint64, who, expects Who)
	Linked  func(id uint64, who Who) error
	// Birth is with which state the cluster began; nil: with an empty one. Agrees reports whether a member that began
	// with another one may have a link; nil: only one that began with the same. Born is called on a member that does not
	// know it, with the birth that another one sent, before anything is read from their link; an error ends that link,
	// and may be final. All are called concurrently.
	Birth  func() Birth
	Agrees func(Birth) bool
	Born   func(id uint64, state string) error
	// Writes is called with the format that another member writes if it is later than this member's, before anything is
	// read from their link; an error ends that link. When it returns nil, this member has recorded durably that it may
	// have the format, and frames have it from then on. nil: no frame in a later format is received. It is called
	// concurrently.
	Writes func(id uint64, format int) error
	// Lineage is that of this member's log, 0 while it is not known; nil: links are not distinguished by it. Founders is
	// a digest of the members that founded the log with this one; 0: this one did not, or it is not known. CheckOrigin
	// gets what another member sent of both, before anything is read from their link. With an error there is no link; ok
	// is false if it is because the other member has another log. Lineage and CheckOrigin are called concurrently.
	Lineage     func() uint64
	Founders    uint64
	CheckOrigin func(id, lineage, founders uint64) (ok bool, err error)
}

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
