package wpaxos

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/protocol/multipaxos"
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/quorum"
)

// WPaxos is one group of keys on one member: an instance of multi-Paxos whose leader, the owner, transfers the group
// to the member that sends most of its commands. See protocol.Core for how to use it.
type WPaxos struct {
	inner   *multipaxos.Paxos
	self    protocol.MemberID
	quorums quorum.System
	demand  demand
	// owns is the ballot under which this member owns the group and counts demand; 0: it does not own it. Invariant: it
	// is the leader's ballot, or 0 on others.
	owns paxos.Ballot
}

// New starts a group from what its disk holds. It returns a [*protocol.SettingsError], a [*protocol.ProfileError] or
// a [*protocol.CorruptError].
func New(cfg protocol.Settings, rec protocol.Recovered) (*WPaxos, error) {
	var err error
	if cfg.Mutant, err = innerMutant(cfg.Mutant); err != nil {
		return nil, err
	}
	if cfg, err = cfg.WithDefaults(); err != nil {
		return nil, err
	}
	if err = cfg.Complete(Settings); err != nil {
		return nil, err
	}
	// The members and their profile never change, so the base has it.
	if cfg, err = common.Tuned(cfg, Settings, &rec.Base.Config.Profile); err != nil {
		return nil, err
	}
	how := Steal.In(cfg.Own)
	core, err := multipaxos.NewWithin(Settings, cfg, rec)
	if err != nil {
		return nil, err
	}
	return &WPaxos{inner: core, self: cfg.Self, quorums: quorum.Setting.In(cfg.Own), demand: demand{how: how}}, nil
}

// Step is protocol.Core's.
func (w *WPaxos) Step(now time.Duration, in protocol.Input, out *protocol.Effects) {
	if in, is := in.(protocol.ProposeChange); is {
		if in.Context != 0 {
			out.Reject = append(out.Reject, protocol.Rejection{Context: in.Context, Reason: protocol.ReasonFixed})
		}
		return
	}
	to := w.count(in)
	w.inner.Step(now, in, out)
	w.updateOwnership()
	if to != 0 && w.owns != 0 {
		w.inner.Step(now, protocol.Transfer{To: to}, out)
		w.updateOwnership()
	}
}

// count counts requests to the owner. It returns the member that should own the group in its place; 0: none.
func (w *WPaxos) count(in protocol.Input) (to protocol.MemberID) {
	if w.owns == 0 {
		return 0
	}
	switch in := in.(type) {
	case protocol.Propose:
		return w.demand.add(w.self, commands(in.Entries))
	case protocol.Read:
		return w.demand.add(w.self, 1)
	case *protocol.Message:
		switch in.Type {
		case multipaxos.MsgPropose:
			return w.demand.add(in.From, commands(in.Entries))
		case multipaxos.MsgRead:
			return w.demand.add(in.From, 1)
		}
	}
	return 0
}

// commands is the number of commands in entries.
func commands(entries []protocol.Entry) (n int) {
	for i := range entries {
		n += int(min(entries[i].Count, MaxStealAfter))
	}
	return min(n, MaxStealAfter)
}

// updateOwnership starts counting when this member becomes the owner, and stops when it is not the owner any more.
func (w *WPaxos) updateOwnership() {
	ballot := w.inner.Leads()
	if ballot == w.owns {
		return
	}
	if w.owns = ballot; ballot == 0 {
		w.demand.end()
		return
	}
	st := w.inner.Status()
	w.demand.begin(w.self, quorum.VotersOf(&st.Config), w.quorums)
}

// Check is protocol.Core's.
func (w *WPaxos) Check() error {
	if w.owns != w.inner.Leads() || (w.owns == 0) != (len(w.demand.voters) == 0) {
		return fmt.Errorf("wpaxos: member %s counts for ballot %s, and leads under %s", w.self, w.owns, w.inner.Leads())
	}
	if err := w.demand.check(); err != nil {
		return fmt.Errorf("wpaxos: member %s: %w", w.self, err)
	}
	return w.inner.Check()
}

// Status is protocol.Core's.
func (w *WPaxos) Status() protocol.Status { return w.inner.Status() }
