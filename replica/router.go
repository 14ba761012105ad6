package replica

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
)

// loops are the event loops of all instances that a member hosts. The set is replaced as a
// whole, never changed.
type loops struct {
	all []*loop // ascending by instance; never empty, the first one's is never retired
	ids []protocol.InstanceID
}

func newLoops(all []*loop) *loops {
	s := &loops{all: all}
	for _, l := range all {
		s.ids = append(s.ids, l.id)
	}
	return s
}

func (r *Replica) all() []*loop { return r.loops.Load().all }

// streamOf is the stream of an instance: its own, but for clusters that were reshaped very
// often, where one that is long retired had the same.
func streamOf(id protocol.InstanceID) uint32 { return uint32(id % 256) }

func (r *Replica) first() *loop { return r.loops.Load().all[0] }

// find returns an instance's loop, nil if it is not hosted here.
func (r *Replica) find(id protocol.InstanceID) *loop {
	for _, l := range r.all() {
		if l.id == id {
			return l
		}
	}
	return nil
}

// router is the Weaver of all loops.
type router struct {
	risen  atomic.Uint64 // counts the wants that rose
	mu     sync.Mutex
	weaver member.Weaver
}

// set tells how an instance stands, and returns what the others want of it.
func (r *router) set(t member.Thread, rises bool, wake []protocol.InstanceID) (order.Slot, []protocol.InstanceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wake = r.weaver.Set(t, wake)
	if rises {
		r.risen.Add(1)
	}
	return r.weaver.Want(t.Instance), wake
}

func (r *router) want(instance protocol.InstanceID) order.Slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.weaver.Want(instance)
}

// weave tells the other instances how this one stands and has it skip what they wait for, in
// the turn that the records of both go to the disk.
func (l *loop) weave() {
	if len(l.r.all()) == 1 || l.gone > 0 {
		return
	}
	now := l.clock.Now()
	t := l.inst.Thread(now)
	risen := l.r.router.risen.Load()
	if t == l.thread && risen == l.risen {
		return // nothing is new, neither here nor with the others
	}
	var want order.Slot
	l.risen = risen
	if t == l.thread {
		want = l.r.router.want(l.id)
	} else {
		want, l.wakes = l.r.router.set(t, t.Want != l.thread.Want, l.wakes[:0])
		l.thread = t
		for _, id := range l.wakes {
			if o := l.r.find(id); o != nil {
				poke(o.wake)
			}
		}
	}
	l.inst.Weave(now, want, &l.out)
}

// note publishes how much work of this member's the instance has.
func (l *loop) note() {
	load := uint64(l.inst.Pending()) << 2
	if l.inst.Role() == protocol.Leader {
		load |= 2
	}
	if leader, _ := l.inst.Leader(); leader != 0 {
		load |= 1
	}
	if load != l.load.Load() {
		l.load.Store(load)
	}
	if tail := l.inst.Tail(); tail != nil && uint64(tail.Round()) != l.round.Load() {
		l.round.Store(uint64(tail.Round()))
	}
}

func (l *loop) loaded() member.Load {
	load := l.load.Load()
	return member.Load{Leads: load&2 != 0, Led: load&1 != 0, Pending: int(load >> 2), Round: protocol.Round(l.round.Load())}
}

func (l *loop) unloaded() bool { return l.load.Load()>>2 == 0 }

// preferred is the loop that should take this member's next batch.
func (r *Replica) preferred() *loop {
	all := r.all()
	if len(all) == 1 {
		return all[0]
	}
	return all[member.Prefer(len(all), func(i int) member.Load { return all[i].loaded() })]
}

// tell tells the other instances that something happened.
func (l *loop) tell(in protocol.Input) {
	for _, o := range l.r.all() {
		if o != l {
			o.input(in, 0)
		}
	}
}

// tend looks, once in a heartbeat, whether another member should lead the instance, whether
// its members are those of the first one, and whether those that wait for it are heard.
func (l *loop) tend() {
	loops, now := l.r.all(), l.clock.Now()
	if len(loops) == 1 || l.gone > 0 || now-l.looked < l.r.opt.Heartbeat {
		return
	}
	l.looked, l.risen = now, ^uint64(0) // a skip may have been refused
	turn := slices.Index(loops, l)
	l.inst.Step(now, protocol.Place{At: turn}, &l.out)
	l.inst.Remind(now, l.r.opt.Heartbeat, l.r.router.want(l.id), &l.out)
	l.woven.Store(l.weaveStatus())
	st := l.status.Load()
	if st.Role != protocol.Leader {
		l.stays.Store(false)
	}
	leader, patience := loops[0].status.Load().Leader, 2*l.r.opt.ElectionTimeout
	to := l.r.opt.Leaders.Preferred(st.Config.Voters(), turn, leader)
	if l.stays.Load() {
		to = 0
	}
	to = l.mover.Next(now, patience, st, to)
	if to != 0 {
		l.inst.Step(now, protocol.Transfer{To: to}, &l.out)
	}
	if l == loops[0] {
		return
	}
	if st.Term == 0 && l.r.opt.Leaders.Preferred(st.Config.Voters(), turn, leader) == l.r.opt.Self {
		l.inst.Step(now, protocol.Stand{}, &l.out)
	}
	l.missed(now, st)
	_, configs := l.r.apply.at()
	if target := l.following.Next(now, patience, &configs[0], st); target != nil {
		l.inst.Step(now, protocol.ProposeChange{Target: target}, &l.out)
	}
}

// WeaveStatus is how an instance stands in the weaving of the global log.
type WeaveStatus struct {
	Instance protocol.InstanceID
	// Filled is how many rounds its log fills for good, Tail how many to its end.
	Filled, Tail protocol.Round
	// Want is the furthest slot that it wants the others to reach.
	Want order.Slot
	// Skips counts those that this member proposed in this life; Waiting are the entries that
	// are committed and wait for their turn, without those that have nothing to apply.
	Skips   uint64
	Waiting int
}

func (l *loop) weaveStatus() *WeaveStatus {
	tail := l.inst.Tail()
	if tail == nil {
		return nil
	}
	return &WeaveStatus{Instance: l.id, Filled: tail.CommittedRound(), Tail: tail.Round(), Want: tail.Want(), Skips: l.inst.Skips()}
}
