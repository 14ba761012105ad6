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

// This file is cluster.Handshakes as the links and the event loops use it (docs/internals/identity.md).

// acquainted guards the Handshakes of a running member.
type acquainted struct {
	wmu        sync.Mutex // held also while the register is made durable
	handshakes cluster.Handshakes
	heard      chan struct{} // holds a token after a member has answered
}

// handshakeWorld gives cluster.Handshakes what it needs of the member.
type handshakeWorld struct{ r *Replica }

// Save implements cluster.HandshakeWorld, as Fail does.
func (w handshakeWorld) Save(register *cluster.Register) error {
	return w.r.dir.SaveRegister(register)
}

func (w handshakeWorld) Adopt(state string) error {
	return cluster.AdoptBirth(w.r.apply.machine.Machine(), state)
}

func (w handshakeWorld) NoteBirth(state string) error { return w.r.dir.RecordBirth(state) }

func (w handshakeWorld) Fail(err error) { w.r.fail(err) }

// systemChance draws from the system's randomness.
func systemChance() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// onLink and offLink convert between the protocol's Who and the transport's.
func onLink(w protocol.Who) transport.Who {
	return transport.Who{Log: w.Log, Life: w.Life, Mark: w.Mark}
}

func offLink(w transport.Who) protocol.Who {
	return protocol.Who{Log: w.Log, Life: w.Life, Mark: w.Mark}
}

// takes is transport.Options.Takes.
func (r *Replica) takes(id uint64) transport.Who {
	r.wmu.Lock()
	defer r.wmu.Unlock()
	return onLink(r.handshakes.Takes(protocol.MemberID(id)))
}

// meet is transport.Options.Meet.
func (r *Replica) meet(id uint64, who, takes transport.Who) error {
	r.wmu.Lock()
	defer r.wmu.Unlock()
	return r.handshakes.Meet(protocol.MemberID(id), offLink(who), offLink(takes))
}

// unmet is transport.Options.Unmet.
func (r *Replica) unmet(id uint64, who, takes transport.Who) {
	r.wmu.Lock()
	defer r.wmu.Unlock()
	r.handshakes.Unmet(protocol.MemberID(id), offLink(who), offLink(takes))
}

// met is transport.Options.Met.
func (r *Replica) met(id uint64, who transport.Who) error {
	r.wmu.Lock()
	defer r.wmu.Unlock()
	return r.handshakes.Met(protocol.MemberID(id), offLink(who))
}

// birth is transport.Options.Birth.
func (r *Replica) birth() transport.Birth {
	r.wmu.Lock()
	defer r.wmu.Unlock()
	return transport.Birth(r.handshakes.Birth())
}

// agrees is transport.Options.Agrees.
func (r *Replica) agrees(b transport.Birth) bool {
	r.wmu.Lock()
	defer r.wmu.Unlock()
	return r.handshakes.Agrees(cluster.Birth(b))
}

// born is transport.Options.Born.
func (r *Replica) born(id uint64, state string) error {
	r.wmu.Lock()
	learned, err := r.handshakes.Born(state)
	r.wmu.Unlock()
	if learned {
		r.checkEarly()
		r.log.Info("a member says with which state the cluster began", "member", id, "state", cmp.Or(state, "empty"))
	}
	if learned && state != "" {
		r.CheckState()
	}
	return err
}

// lineage is transport.Options.Lineage.
func (r *Replica) lineage() uint64 {
	r.wmu.Lock()
	defer r.wmu.Unlock()
	return r.handshakes.Lineage()
}

// relate is transport.Options.Relate.
func (r *Replica) relate(id, lineage, founders uint64) (ok bool, err error) {
	r.wmu.Lock()
	err = r.handshakes.Relate(protocol.MemberID(id), lineage, founders)
	r.wmu.Unlock()
	r.checkEarly()
	another := errors.As(err, new(*member.LineageError)) || errors.As(err, new(*cluster.FoundersError))
	return !another, err
}

// descends takes in of which lineage the applied log is.
func (r *Replica) descends(lineage uint64) {
	r.wmu.Lock()
	r.handshakes.Descends(lineage)
	r.wmu.Unlock()
	r.checkEarly()
}

// learn takes in from the configuration that the links follow whose log each member has. applied is what is applied of it.
func (r *Replica) learn(linked, applied *protocol.Config) {
	r.wmu.Lock()
	strangers := r.handshakes.Learn(linked, applied)
	r.wmu.Unlock()
	for _, id := range strangers {
		r.log.Warn("member is not the one that the cluster knows, its links end", "member", id)
		if r.links != nil {
			r.links.Drop(uint64(id))
		}
	}
}

// answered notes that a member has a link now, or that the reason is known why it has none.
func (r *Replica) answered(id uint64) {
	r.wmu.Lock()
	r.handshakes.Answered(protocol.MemberID(id))
	r.wmu.Unlock()
	poke(r.heard)
}

// takePart starts the event loops as soon as the member takes part. If the member stops before, they
// end at once.
func (r *Replica) takePart() {
	defer r.done.Done()
	for waits := r.waits(); waits > 0 && r.ctx.Err() == nil; waits = r.waits() {
		select {
		case <-r.heard:
		case <-time.After(waits):
		case <-r.stop:
		}
	}
	for _, l := range r.all() {
		r.done.Add(1)
		go l.run()
	}
}

func (r *Replica) waits() time.Duration {
	r.wmu.Lock()
	defer r.wmu.Unlock()
	return r.handshakes.Waits(r.now())
}
