package replica

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/protocol"
)

// acquaintances are cluster.Handshakes as the links and the event loops use them (docs/internals/identity.md). Their
// methods are safe for concurrent use.
type acquaintances struct {
	r     *Replica
	heard chan struct{} // holds a token after a member has answered

	mu         sync.Mutex // held also while the register is made durable
	handshakes cluster.Handshakes
}

// unnamed lists the changes that name in the membership whose log each member has, or that give the log its first
// profile.
func (a *acquaintances) unnamed(st *protocol.Status) []protocol.Change {
	var shown cluster.Shown
	a.mu.Lock()
	raise := a.handshakes.MayRaise(&st.Config)
	a.mu.Unlock()
	if st.Config.Profile.Version == 0 || raise {
		_, shown = a.r.linked()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handshakes.Publish(st, time.Now().UnixMilli(), shown)
}

// begin begins to wait for what other members say of this one.
func (a *acquaintances) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := &a.r.opt
	a.handshakes.Begin(a.r.now(), a.r.tuning().Election, a.r.dir.Instances.InForce, o.Members)
}

// admit returns why a member that has no link may not connect; 0: it may.
func (a *acquaintances) admit(id uint64) transport.Reason {
	_, configs := a.r.apply.at()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handshakes.Admit(configs, protocol.MemberID(id))
}

// handshakeWorld gives cluster.Handshakes what it needs of the member.
type handshakeWorld struct{ r *Replica }

// Save implements cluster.HandshakeWorld, as Fail does.
func (w handshakeWorld) Save(register *cluster.Register) error {
	return w.r.dir.SaveRegister(register)
}

// Adopt also makes Apply halt, before a link can bring entries: what it applied would be read without that state.
func (w handshakeWorld) Adopt(state string) error {
	err := cluster.AdoptBirth(w.r.apply.machine.Machine(), state)
	if err == nil && state != "" {
		w.r.CheckState()
	}
	return err
}

func (w handshakeWorld) RecordBirth(state string) error { return w.r.dir.RecordBirth(state) }

func (w handshakeWorld) WriteFormat(to int) error {
	err := w.r.dir.WriteFormat(to)
	if err == nil {
		w.r.log.Info("the log has a format that earlier versions do not know", "event", "format", "format", to)
	}
	return err
}

func (w handshakeWorld) Fail(err error) { w.r.fail(err) }

// systemChance draws from the system's randomness.
func systemChance() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// onLink and offLink convert between the protocol's Who and the transport's.
func onLink(w protocol.Who) transport.Who {
	return transport.Who{Log: w.Log, Life: w.Incarnation, Mark: w.Mark}
}

func offLink(w transport.Who) protocol.Who {
	return protocol.Who{Log: w.Log, Incarnation: w.Life, Mark: w.Mark}
}

// expects is transport.Handshake.Expects.
func (a *acquaintances) expects(id uint64) transport.Who {
	a.mu.Lock()
	defer a.mu.Unlock()
	return onLink(a.handshakes.Takes(protocol.MemberID(id)))
}

// check is transport.Handshake.Verify.
func (a *acquaintances) check(id uint64, who, takes transport.Who) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handshakes.Meet(protocol.MemberID(id), offLink(who), offLink(takes))
}

// unmet is transport.Handshake.Refused.
func (a *acquaintances) unmet(id uint64, who, takes transport.Who) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handshakes.Unmet(protocol.MemberID(id), offLink(who), offLink(takes))
}

// met is transport.Handshake.Linked.
func (a *acquaintances) met(id uint64, who transport.Who) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handshakes.Met(protocol.MemberID(id), offLink(who))
}

// birth is transport.Handshake.Birth.
func (a *acquaintances) birth() transport.Birth {
	a.mu.Lock()
	defer a.mu.Unlock()
	return transport.Birth(a.handshakes.Birth())
}

// agrees is transport.Handshake.Agrees.
func (a *acquaintances) agrees(b transport.Birth) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handshakes.Agrees(cluster.Birth(b))
}

// born is transport.Handshake.Born.
func (a *acquaintances) born(id uint64, state string) error {
	a.mu.Lock()
	learned, err := a.handshakes.Born(state)
	a.mu.Unlock()
	if learned {
		a.checkEarly()
		a.r.log.Info("a member says with which state the cluster began", "member", id, "state", cmp.Or(state, "empty"))
	}
	return err
}

// told is transport.Options.Settings.
func (a *acquaintances) told() transport.Told {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.handshakes.Told()
	if v, ok := a.r.apply.machine.Machine().(member.Versioned); ok {
		t.StateNeeded, t.StateKnown = v.StateVersion()
	}
	return t
}

// lineage is transport.Handshake.Lineage.
func (a *acquaintances) lineage() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handshakes.Lineage()
}

// relate is transport.Handshake.CheckOrigin.
func (a *acquaintances) relate(id, lineage, founders uint64) (ok bool, err error) {
	a.mu.Lock()
	err = a.handshakes.Relate(protocol.MemberID(id), lineage, founders)
	a.mu.Unlock()
	a.checkEarly()
	another := errors.As(err, new(*member.LineageError)) || errors.As(err, new(*cluster.FoundersError))
	return !another, err
}

// descends takes in of which lineage the applied log is.
func (a *acquaintances) descends(lineage uint64) {
	a.mu.Lock()
	a.handshakes.Descends(lineage)
	a.mu.Unlock()
	a.checkEarly()
}

// learn takes in from the configuration that the links follow whose log each member has. applied is what is applied of
// it. grown: see cluster.Handshakes.Learn.
func (a *acquaintances) learn(linked, applied *protocol.Config, grown bool) {
	a.mu.Lock()
	strangers := a.handshakes.Learn(linked, applied, grown)
	format := a.handshakes.Format()
	a.mu.Unlock()
	for _, id := range strangers {
		a.r.log.Warn("member is not the one that the cluster knows, its links end", "member", id)
		if a.r.links != nil {
			a.r.links.Drop(uint64(id))
		}
	}
	if a.r.links != nil {
		a.r.links.WriteFormat(format)
	}
}

// writes is transport.Handshake.Writes.
func (a *acquaintances) writes(_ uint64, format int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handshakes.Writes(format)
}

// answered notes that a member has a link now, or that the reason is known why it has none.
func (a *acquaintances) answered(id uint64) {
	a.mu.Lock()
	a.handshakes.Answered(protocol.MemberID(id))
	a.mu.Unlock()
	poke(a.heard)
}

// startLoops starts the event loops as soon as the member takes part. If the member stops before, they
// end at once.
func (r *Replica) startLoops() {
	defer r.done.Done()
	for waits := r.who.waits(); waits > 0 && r.ctx.Err() == nil; waits = r.who.waits() {
		select {
		case <-r.who.heard:
		case <-time.After(waits):
		case <-r.stop:
		}
	}
	for _, l := range r.all() {
		r.done.Add(1)
		go l.run(false)
	}
}

func (a *acquaintances) waits() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handshakes.Waits(a.r.now())
}
