package replica

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// eventLoops are the event loops of all instances: see lifecycle.Instances. The set never changes: another one replaces
// it as a whole. Of the active instances it implements instance.Siblings.
type eventLoops struct {
	all     []*eventLoop // active, ascending by instance; never empty, because the first one is never retired
	ids     []protocol.InstanceID
	since   protocol.Position
	staying []*eventLoop // retired
}

// IDs implements instance.Siblings, as the methods below do.
func (s *eventLoops) IDs() []protocol.InstanceID { return s.ids }

func (s *eventLoops) Load(i int) instance.Load {
	l := s.all[i]
	load := l.load.Load()
	return instance.Load{Leads: load&2 != 0, Led: load&1 != 0, Pending: int(load >> 2),
		Round: protocol.Round(l.round.Load())}
}

func (s *eventLoops) Status(i int) *protocol.Status { return s.all[i].status.Load() }

func (s *eventLoops) Wake(i int) { poke(s.all[i].wake) }

func (h *hosting) all() []*eventLoop { return h.loops.Load().all }

func (h *hosting) first() *eventLoop { return h.loops.Load().all[0] }

// find returns the loop of an instance; nil if the instance is not active here.
func (h *hosting) find(id protocol.InstanceID) *eventLoop { return loopOf(h.all(), id) }

// hosted returns the loop of an instance that is active, or is retired and stays for a while.
func (h *hosting) hosted(id protocol.InstanceID) *eventLoop {
	loops := h.loops.Load()
	if l := loopOf(loops.all, id); l != nil {
		return l
	}
	return loopOf(loops.staying, id)
}

// uses reports whether an instance that is hosted sends on a stream.
func (h *hosting) uses(stream uint32) bool {
	loops := h.loops.Load()
	on := func(l *eventLoop) bool { return l.sender.Stream == stream }
	return slices.ContainsFunc(loops.all, on) || slices.ContainsFunc(loops.staying, on)
}

func loopOf(loops []*eventLoop, id protocol.InstanceID) *eventLoop {
	for _, l := range loops {
		if l.id == id {
			return l
		}
	}
	return nil
}

// Risen implements instance.Rounds, as ReportRounds and Wanted do.
func (l *eventLoop) Risen() uint64 { return l.r.router.risen.Load() }

func (l *eventLoop) ReportRounds(
	t instance.InstanceRounds, wake []protocol.InstanceID,
) (order.Slot, []protocol.InstanceID) {
	return l.r.router.set(t, wake)
}

func (l *eventLoop) Wanted() order.Slot { return l.r.router.want(l.id) }

// router holds the WantedRounds that all loops share.
type router struct {
	risen  atomic.Uint64 // a copy of that of weaver, to be read without the lock
	mu     sync.Mutex
	weaver instance.WantedRounds
}

// set notes how far an instance is. It returns what the others want of the instance, and
// wake with the instances that must be woken.
func (r *router) set(t instance.InstanceRounds, wake []protocol.InstanceID) (order.Slot, []protocol.InstanceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wake = r.weaver.Set(t, wake)
	if r.weaver.Risen != r.risen.Load() {
		r.risen.Store(r.weaver.Risen)
	}
	return r.weaver.Want(t.Instance), wake
}

func (r *router) want(instance protocol.InstanceID) order.Slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.weaver.Want(instance)
}

func (r *router) forget(instance protocol.InstanceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.weaver.Forget(instance)
}
