package replica

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/braidlog/braid/datadir"
	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/transport"
)

// This file is the register as the links and the event loops use it (docs/identity.md).

// acquainted holds the register of a running member.
type acquainted struct {
	wmu      sync.Mutex
	register *member.Register // guarded by wmu, which is also held while the register is made durable
	hears    hearing
}

// systemChance draws from the system's randomness.
func systemChance() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// takes is transport.Options.Takes.
func (r *Replica) takes(id uint64) transport.Who {
	r.wmu.Lock()
	defer r.wmu.Unlock()
	return onLink(r.register.Takes(protocol.MemberID(id)))
}

// onLink and offLink convert between the protocol's Who and the transport's.
func onLink(w protocol.Who) transport.Who {
	return transport.Who{Log: w.Log, Life: w.Life, Mark: w.Mark}
}

func offLink(w transport.Who) protocol.Who {
	return protocol.Who{Log: w.Log, Life: w.Life, Mark: w.Mark}
}

// meet is transport.Options.Meet. It refuses strangers, and stops this member if it is a stranger.
func (r *Replica) meet(id uint64, who, takes transport.Who) error {
	r.wmu.Lock()
	err := r.register.Meet(protocol.MemberID(id), offLink(who), offLink(takes))
	r.wmu.Unlock()
	r.stopIfForgotten(err)
	return err
}

// met is transport.Options.Met.
func (r *Replica) met(id uint64, who transport.Who) error {
	r.wmu.Lock()
	defer r.wmu.Unlock()
	if !r.register.Note(protocol.MemberID(id), offLink(who)) {
		return nil
	}
	err := datadir.SaveRegister(r.opt.FS, r.opt.Dir, r.register)
	if err != nil {
		r.fail(err) // the register has more than the disk
	}
	return err
}

// learn takes in from a configuration whose log each member has.
func (r *Replica) learn(c *protocol.Config) {
	r.wmu.Lock()
	strangers, err := r.register.Learn(c)
	r.wmu.Unlock()
	r.stopIfForgotten(err)
	for _, id := range strangers {
		r.log.Warn("member is not the one that the cluster knows, its links end", "member", id)
		if r.links != nil {
			r.links.Drop(uint64(id))
		}
	}
}

func (r *Replica) stopIfForgotten(err error) {
	var forgotten *member.ForgottenError
	if errors.As(err, &forgotten) {
		r.fail(forgotten)
	}
}

// condemn stops the member for ever, because it lost what it acknowledged.
func (r *Replica) condemn(f *protocol.Forgot) {
	err := datadir.Condemn(r.opt.FS, r.opt.Dir, r.opt.Cluster, r.opt.Self, f)
	r.fail(errors.Join(member.Forgotten(r.opt.Self, f), err))
}

// Newborn reports whether a member has no log yet. Then it has never promised anything.
func Newborn(logs []member.InstanceLog) bool {
	return !slices.ContainsFunc(logs, func(l member.InstanceLog) bool {
		return l.Recovered.Base.Index > 0 || l.Recovered.State.Term > 0 || len(l.Recovered.Entries) > 0
	})
}

// takePart starts the event loops. A member without a log may be one that lost its disk. So it first
// waits until each other member has said whether it knows this one, or cannot be reached, or until
// a timeout. Members that link later tell it then.
func (r *Replica) takePart() {
	defer r.done.Done()
	r.hears.wait(r.stop, r.opt.ElectionTimeout)
	for _, l := range r.all() {
		r.done.Add(1)
		go l.run()
	}
}

// hearing waits for the first answer of each of some members.
type hearing struct {
	mu   sync.Mutex
	left []protocol.MemberID
	done chan struct{} // nil: nobody waits
}

// await begins to wait for all members but self.
func (a *hearing) await(members []protocol.Member, self protocol.MemberID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range members {
		if id := members[i].ID; id != self {
			a.left = append(a.left, id)
		}
	}
	if len(a.left) > 0 {
		a.done = make(chan struct{})
	}
}

// answered notes that a member has a link now, or that the reason is known why it has none.
func (a *hearing) answered(id protocol.MemberID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.left, id)
	if i < 0 {
		return
	}
	if a.left = slices.Delete(a.left, i, i+1); len(a.left) == 0 {
		close(a.done)
	}
}

// wait returns when all have answered, after timeout, or when the member stops.
func (a *hearing) wait(stop <-chan struct{}, timeout time.Duration) {
	if a.done == nil {
		return
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-a.done:
	case <-timer.C:
	case <-stop:
	}
}
