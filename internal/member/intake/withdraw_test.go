package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// withdrawing is a batch of the commands a to e, and what they were told.
func withdrawing(t *testing.T, p *Proposals) (tickets map[string]Ticket, told map[string]error) {
	t.Helper()
	tickets, told = map[string]Ticket{}, map[string]error{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		_, err := p.Add(func() time.Duration { return 0 }, []byte(name), func(_ any, err error) { told[name] = err })
		require.NoError(t, err)
		tickets[name] = p.Last()
	}
	return tickets, told
}

func commandsIn(t *testing.T, b *Batch) (names string) {
	t.Helper()
	for rest := b.Entry.Payload; len(rest) > 0; {
		command, tail, err := protocol.NextCommand(rest)
		require.NoError(t, err)
		names, rest = names+string(command), tail
	}
	require.Len(t, names, int(b.Entry.Count))
	require.Len(t, b.Done, int(b.Entry.Count))
	return names
}

// TestWithdrawnCommandsLeaveTheirBatch withdraws commands before a batch is taken, and after. Tickets name the same
// commands whatever left the batch before.
func TestWithdrawnCommandsLeaveTheirBatch(t *testing.T) {
	p := &Proposals{MaxBatch: 1 << 20, MaxBytes: 1 << 20}
	p.Free = func(b *Batch) { p.Settled(0, b) }
	tickets, told := withdrawing(t, p)
	withdraw := func(name string) bool {
		ok, _ := p.Withdraw(tickets[name])
		return ok
	}
	require.True(t, withdraw("b"))
	require.False(t, withdraw("b"), "twice")
	b := p.Take()
	ok, instance := p.Withdraw(tickets["a"])
	require.False(t, ok)
	require.Equal(t, protocol.FirstInstance, instance, "it has the batch")
	b.DropWithdrawn()
	require.Equal(t, "acde", commandsIn(t, b))
	require.True(t, b.WithdrawAt(tickets["d"].At, ""))
	require.True(t, b.WithdrawAt(tickets["a"].At, ""))
	b.DropWithdrawn()
	require.Equal(t, "ce", commandsIn(t, b))
	require.NoError(t, b.Entry.CheckBatch())
	b.Proposed = 1
	require.False(t, b.WithdrawAt(tickets["e"].At, ""), "it was sent")
	b.Fail(member.ErrMaybeCommitted)
	require.Equal(t, map[string]error{"c": member.ErrMaybeCommitted, "e": member.ErrMaybeCommitted}, told)
	require.Zero(t, p.Bytes())
}

// TestABatchOfWithdrawnCommandsIsEmpty settles it without an answer.
func TestABatchOfWithdrawnCommandsIsEmpty(t *testing.T) {
	p := &Proposals{MaxBatch: 1 << 20, MaxBytes: 1 << 20}
	p.Free = func(b *Batch) { p.Settled(0, b) }
	tickets, told := withdrawing(t, p)
	for _, ticket := range tickets {
		ok, _ := p.Withdraw(ticket)
		require.True(t, ok)
	}
	b := p.Take()
	require.True(t, b.Empty())
	b.Settled()
	require.Zero(t, p.Last(), "its memory is free")
	require.Empty(t, told)
	require.Zero(t, p.Bytes())
	require.NoError(t, p.Check())
}

// TestNothingIsWithdrawnFromWhatFails: batches that were taken out are failed without what guards the proposals.
func TestNothingIsWithdrawnFromWhatFails(t *testing.T) {
	for name, out := range map[string]func(p *Proposals) []*Batch{
		"expired": func(p *Proposals) []*Batch { return p.Expired(time.Hour, time.Minute) },
		"closed":  func(p *Proposals) []*Batch { return p.Close(member.ErrStopped) },
	} {
		p := &Proposals{MaxBatch: 1 << 20, MaxBytes: 1 << 20}
		p.Free = func(b *Batch) { p.Settled(0, b) }
		tickets, told := withdrawing(t, p)
		batches := out(p)
		ok, instance := p.Withdraw(tickets["a"])
		require.False(t, ok, name)
		require.Zero(t, instance, name)
		for _, b := range batches {
			b.Fail(member.ErrStopped)
		}
		require.Len(t, told, 5, name)
	}
	p := &Proposals{MaxBatch: 1 << 20, MaxBytes: 1 << 20}
	p.Free = func(b *Batch) { p.Settled(0, b) }
	q := &ClientQueue{Proposals: p, Free: func(*Batch) {}}
	add := func() Ticket {
		_, err := q.Add(func() time.Duration { return 0 }, []byte("x"), func(any, error) {})
		require.NoError(t, err)
		return p.Last()
	}
	add()
	waits := add()
	b := p.Take()
	b.Fail(member.ErrStopped)
	_, unproposed, _ := q.Settled(func() time.Duration { return 0 }, b)
	require.Len(t, unproposed, 1)
	ok, _ := p.Withdraw(waits)
	require.False(t, ok)
}
