package intake

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
)

// pipelined is a client's queue before a member's proposals, with what became of its commands.
type pipelined struct {
	*testing.T
	p       Proposals
	q       ClientQueue
	results map[string]error
}

func newPipelined(t *testing.T) *pipelined {
	c := &pipelined{T: t, p: Proposals{MaxBatch: 100, MaxCount: 3, MaxBytes: 1000}, results: map[string]error{}}
	c.p.Free = func(b *Batch) { c.p.Settled(0, b) }
	c.q = ClientQueue{Proposals: &c.p, Free: c.settled}
	return c
}

func (c *pipelined) now() time.Duration { return 7 }

func (c *pipelined) settled(b *Batch) {
	_, unproposed, err := c.q.Settled(c.now, b)
	for _, b := range unproposed {
		b.Fail(err)
	}
	require.NoError(c, c.q.Check())
}

func (c *pipelined) add(names ...string) {
	for _, name := range names {
		_, err := c.q.Add(c.now, []byte(name), func(_ any, err error) { c.results[name] = err })
		require.NoError(c, err)
	}
}

func TestAClientHasOneUnsettledBatch(t *testing.T) {
	c := newPipelined(t)
	c.add("a", "b", "c", "d", "e")
	_, err := c.q.AddBody(c.now,
		NewBodyBatch([]byte("f"), make([]byte, 100), func(_ any, err error) { c.results["f"] = err }))
	require.NoError(t, err)
	c.add("g")
	for i, commands := range []int{1, 3, 1, 1, 1} { // the first one went at once; a body has a batch of its own
		b := c.p.Take()
		require.Nil(t, c.p.Take(), "the next one waits")
		require.Len(t, b.Done, commands, "batch %d", i)
		require.EqualValues(t, 7, b.Born)
		b.Settle(0, make([]member.Command, commands))
	}
	require.Len(t, c.results, 7)
	require.Zero(t, c.p.Bytes())
}

func TestAfterAFailureNothingIsProposed(t *testing.T) {
	c := newPipelined(t)
	c.add("a", "b", "c")
	c.p.Take().Fail(member.ErrResultUnknown) // it took effect
	b := c.p.Take()
	c.add("d")
	b.Fail(member.ErrMaybeCommitted)
	require.Nil(t, c.p.Take())
	require.Equal(t, member.ErrMaybeCommitted, c.results["c"])
	var broken *BrokenError
	require.ErrorAs(t, c.results["d"], &broken)
	_, err := c.q.Add(c.now, []byte("e"), nil)
	require.ErrorAs(t, err, &broken)
	require.Zero(t, c.p.Bytes())
}

func TestWithoutProposalsWaitingCommandsFail(t *testing.T) {
	c := newPipelined(t)
	c.add("a", "b")
	b := c.p.Take()
	stop := errors.New("stop")
	require.Empty(t, c.p.Close(stop))
	b.Settle(0, make([]member.Command, 1))
	require.Equal(t, map[string]error{"a": nil, "b": stop}, c.results)
	var broken *BrokenError
	_, err := c.q.Add(c.now, []byte("c"), nil)
	require.ErrorAs(t, err, &broken)
	require.Zero(t, c.p.Bytes())
}

// TestWhatWasWithdrawnDoesNotBreakAClient: a batch expires of which every command was withdrawn, or all but one.
func TestWhatWasWithdrawnDoesNotBreakAClient(t *testing.T) {
	for _, left := range []int{0, 1} {
		c := newPipelined(t)
		c.add("a")
		tickets := []Ticket{c.p.Last()}
		c.p.Take().Settle(0, make([]member.Command, 1))
		for _, name := range []string{"b", "c", "d"}[left:] {
			c.add(name)
			tickets = append(tickets, c.p.Last())
		}
		for _, ticket := range tickets[1+left:] {
			ok, _ := c.p.Withdraw(ticket)
			require.True(t, ok)
		}
		for _, b := range c.p.Expired(time.Hour, time.Minute) {
			b.Fail(b.Abandoned())
		}
		_, err := c.q.Add(c.now, []byte("e"), func(any, error) {})
		if left == 0 {
			require.NoError(t, err, "nothing failed")
		} else {
			require.ErrorAs(t, err, new(*BrokenError))
			require.ErrorIs(t, err, member.ErrNoLeader)
		}
	}
}
