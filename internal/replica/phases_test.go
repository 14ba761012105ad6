package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/snapshot"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
)

// phase is work that a member is doing when it is closed.
type phase struct {
	setting
	// reach brings a member to the phase. Close has to wait until open is called if the state machine is busy. nil: it
	// is not.
	reach func(c *testCluster) (id protocol.MemberID, open func())
}

// phases are all the phases of a member.
var phases = map[string]phase{
	"it waits for the first answers of others": {setting{size: 3, waits: true},
		func(c *testCluster) (protocol.MemberID, func()) {
			c.start(1)
			return 1, nil
		}},
	"it was just opened": {setting{size: 1}, func(c *testCluster) (protocol.MemberID, func()) { return 1, nil }},
	"it begins an election": {setting{size: 3}, func(c *testCluster) (protocol.MemberID, func()) {
		id := c.follower()
		c.net.isolate(uint64(id), true)
		c.until("no leader", func() bool { return c.running[id].first().status.Load().Leader == 0 })
		return id, nil
	}},
	"its proposals are not confirmed": {setting{size: 3}, func(c *testCluster) (protocol.MemberID, func()) {
		id := c.leader()
		c.net.isolate(uint64(id), true)
		return id, nil
	}},
	"its proposals are on their way to the leader": {setting{size: 3}, func(c *testCluster) (protocol.MemberID, func()) {
		id := c.follower()
		c.net.isolate(uint64(id), true)
		return id, nil
	}},
	"reads wait for the state machine": {setting{size: 3}, func(c *testCluster) (protocol.MemberID, func()) {
		busy, open := c.gate()
		id := c.leader()
		c.machines[id].hook(func(m *machine) { m.apply = func(string) error { <-busy; return nil } })
		return id, open
	}},
	"a snapshot is saved": {setting{size: 3}, func(c *testCluster) (protocol.MemberID, func()) {
		id := c.leader()
		<-c.blockWrites(id)
		return id, nil
	}},
	"a snapshot is sent": {setting{size: 3, tune: keepLittle},
		func(c *testCluster) (protocol.MemberID, func()) { from, _ := c.stream(); return from, nil }},
	"a snapshot is received": {setting{size: 3, tune: keepLittle},
		func(c *testCluster) (protocol.MemberID, func()) { _, to := c.stream(); return to, nil }},
	"a snapshot is installed": {setting{size: 3, tune: keepLittle}, func(c *testCluster) (protocol.MemberID, func()) {
		busy, open := c.gate()
		to, reached := c.behind(), make(chan struct{})
		c.machines[to].hook(func(m *machine) { m.restore = func() error { close(reached); <-busy; return nil } })
		c.net.isolate(uint64(to), false)
		<-reached
		return to, open
	}},
	"a body is gathered": {setting{size: 3, placement: protocol.PlacementCode},
		func(c *testCluster) (protocol.MemberID, func()) {
			id := c.follower()
			_, err := c.running[id].Propose(c.t.Context(), []byte("with a body"), make([]byte, 100_000))
			require.NoError(c.t, err)
			c.net.isolate(uint64(id), true)
			return id, nil
		}},
	"it scrubs": {setting{size: 1, tune: func(o *Options) { o.ScrubBytesPerSecond = 1 }},
		func(c *testCluster) (protocol.MemberID, func()) {
			c.leader()
			c.fill(1, "before", 10)
			c.running[1].apply.push(apply.ApplyItem{Due: true})
			c.until("a snapshot", func() bool { return c.running[1].metrics.snapshots.Load() > 0 })
			c.close(1)
			c.start(1) // now it has something to read
			c.until("it scrubs", func() bool { return c.running[1].disk.Stats().Scrubbed > 0 })
			return 1, nil
		}},
	"instances begin": {setting{size: 3, tune: woven(1)}, func(c *testCluster) (protocol.MemberID, func()) {
		id := c.leader()
		c.running[id].first().input(protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(8)}}, 0)
		c.until("the first of them runs", func() bool { return len(c.running[id].all()) > 1 })
		return id, nil
	}},
	"instances retire": {setting{size: 3, tune: woven(8)}, func(c *testCluster) (protocol.MemberID, func()) {
		id := c.leader()
		require.NoError(c.t, c.running[id].Reshape(c.t.Context(), 2))
		require.NotNil(c.t, c.running[id].hosted(8), "it stays for a while")
		return id, nil
	}},
	"its state is repaired": {setting{size: 3, durable: true}, func(c *testCluster) (protocol.MemberID, func()) {
		id := c.follower()
		c.fill(id, "before", 3)
		c.net.isolate(uint64(id), true)
		durable{c.machines[id]}.Condemn(errors.New("a flipped bit"))
		c.running[id].CheckState()
		c.until("it asks for another state", func() (yes bool) {
			c.running[id].exchange.do(func(m *snapshot.StateExchange) { yes = m.Repairing() })
			return yes
		})
		return id, nil
	}},
	"it hands its leadership over": {setting{size: 3}, func(c *testCluster) (protocol.MemberID, func()) {
		id := c.leader()
		c.running[id].first().input(protocol.Transfer{}, 0)
		return id, nil
	}},
}

func woven(instances int) func(*Options) {
	return func(o *Options) { o.Begin = order.Begin(instances, true); o.Leaders = protocol.LeadersTogether }
}

func keepLittle(o *Options) { o.KeepLogBytes = 1 }

// blockWrites makes a member take a snapshot whose writing blocks until the member stops or all members must serve.
// The channel is closed when the first one is being written.
func (c *testCluster) blockWrites(id protocol.MemberID) <-chan struct{} {
	reached, once := make(chan struct{}), sync.Once{}
	c.machines[id].hook(func(m *machine) {
		m.write = func(ctx context.Context) error {
			once.Do(func() { close(reached) })
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-c.serving:
				return nil
			}
		}
	})
	c.running[id].apply.push(apply.ApplyItem{Due: true})
	return reached
}

// behind disconnects a member until the others have removed the part of the log that it needs.
func (c *testCluster) behind() protocol.MemberID {
	c.t.Helper()
	id, leader := c.follower(), c.leader()
	c.net.isolate(uint64(id), true)
	r := c.running[leader]
	has := c.running[id].first().status.Load().Last
	for i := 0; r.first().status.Load().First <= has+1; i++ {
		require.Less(c.t, i, 100, "the log is not cut")
		c.fill(leader, fmt.Sprint("cut off ", i), 3)
		before := r.metrics.snapshots.Load()
		r.apply.push(apply.ApplyItem{Due: true})
		c.until("a snapshot", func() bool { return r.metrics.snapshots.Load() > before })
		c.until("a quiet leader", func() bool {
			return !r.first().status.Load().Peers[0].Active || !r.first().status.Load().Peers[1].Active
		})
	}
	return id
}

// stream makes a member send a snapshot to another one. The transfer never ends.
func (c *testCluster) stream() (from, to protocol.MemberID) {
	c.t.Helper()
	to, from = c.behind(), c.leader()
	reached := c.blockWrites(from)
	<-reached
	c.net.isolate(uint64(to), false)
	c.until("a stream", func() bool {
		return c.running[from].first().streaming(to) > 0
	})
	return from, to
}

// askAll sends a member all kinds of requests.
func (c *testCluster) askAll(a *answers, id protocol.MemberID, when string) {
	r, ctx := c.running[id], context.Background()
	name := func(what string) string { return when + ": " + what }
	refused := map[string]error{}
	for i := range 3 {
		refused[name(fmt.Sprint("command ", i))] = a.propose(r, name(fmt.Sprint("command ", i)), nil)
		refused[name(fmt.Sprint("body ", i))] = a.propose(r, name(fmt.Sprint("body ", i)), make([]byte, 5000))
	}
	client := r.NewClient()
	for i := range 3 {
		refused[name(fmt.Sprint("ordered ", i))] = a.propose(client, name(fmt.Sprint("ordered ", i)), nil)
	}
	for what, err := range refused {
		if err != nil { // it was refused at once
			a.owe()
			a.tell(what, err)
		}
	}
	a.ask(name("propose"), func() error { _, err := r.Propose(ctx, []byte(name("propose")), nil); return err })
	a.ask(name("read"), func() error { return r.ReadBarrier(ctx) })
	a.ask(name("change"), func() error {
		return r.ChangeMembers(ctx,
			[]protocol.Change{{Kind: protocol.AddLearner,
				Member: protocol.Member{ID: 9, PeerURLs: []string{"http://member9:1"}}}})
	})
	a.ask(name("transfer"), func() error { return r.TransferLeader(ctx, 0) })
	a.ask(name("reshape"), func() error { return r.Reshape(ctx, 3) })
	a.ask(name("body of nothing"), func() error {
		_, err := r.Body(ctx, protocol.BodyRef{Instance: 1, Index: 77, Term: 1, Size: 5, K: 1})
		return err
	})
	for _, ref := range c.bodiesOf(id) {
		a.ask(name(fmt.Sprintf("body at %d of instance %d", ref.Index, ref.Instance)),
			func() error { _, err := r.Body(ctx, ref); return err })
	}
	r.exchange.do(func(m *snapshot.StateExchange) { m.Ask(9, &member.SnapshotOffer{}) }) // a view of the state is closed
	a.ask(name("hand over"), func() error { r.HandOver(ctx); return nil })
}

func (c *testCluster) bodiesOf(id protocol.MemberID) (refs []protocol.BodyRef) {
	_ = c.machines[id].LiveBodies(func(ref protocol.BodyRef) { refs = append(refs, ref) })
	return refs
}

// TestAMemberIsClosedInEveryPhase closes a member during all kinds of work. Requests come before, during and after
// it. Each is answered once. The directory can be opened again at once, and the member participates again.
func TestAMemberIsClosedInEveryPhase(t *testing.T) {
	testsize.Long(t)
	for name, p := range phases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, p.setting, func(c *testCluster) {
				id, open := p.reach(c)
				c.closeDuring(id, open)
				c.serves()
			})
		})
	}
}

// closeTime bounds the time of Close, by the clock of the bubble, besides that of the state machine.
const closeTime = 10 * time.Millisecond

func (c *testCluster) closeDuring(id protocol.MemberID, open func()) {
	c.t.Helper()
	r, a := c.running[id], newAnswers()
	c.askAll(a, id, "before")
	synctest.Wait()
	var closed sync.WaitGroup
	began := time.Now()
	for range 2 {
		closed.Go(func() { require.NoError(c.t, r.Close()) })
	}
	c.askAll(a, id, "meanwhile")
	synctest.Wait()
	if open != nil {
		open()
	}
	closed.Wait()
	require.LessOrEqual(c.t, time.Since(began), closeTime)
	c.askAll(a, id, "after")
	synctest.Wait()
	a.complete(c.t)
	c.ended(id)
	c.start(id)
}

// serves requires that all members participate.
func (c *testCluster) serves() {
	c.t.Helper()
	for _, m := range c.members {
		c.net.isolate(uint64(m.ID), false)
		if c.running[m.ID] == nil {
			c.start(m.ID)
		}
	}
	for _, m := range c.members {
		c.machines[m.ID].hook(func(m *machine) { m.apply, m.write, m.restore, m.close, m.take = nil, nil, nil, nil, nil })
	}
	close(c.serving)
	c.leader()
	for _, m := range c.members {
		require.NoError(c.t, c.running[m.ID].ReadBarrier(c.t.Context()))
		c.fill(m.ID, fmt.Sprint("again ", m.ID), 2)
	}
}
