package intake

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// TestAskedIsWhatWasAnswered counts commands of one member, in whatever way they came.
func TestAskedIsWhatWasAnswered(t *testing.T) {
	now := time.Duration(0)
	clock := func() time.Duration { return now }
	p := &Proposals{MaxBatch: 100, MaxBytes: 10000}
	p.Free = func(b *Batch) { p.Settled(now, b) }
	q := &ClientQueue{Proposals: p}
	q.Free = func(b *Batch) {
		_, _, err := q.Settled(clock, b)
		require.NoError(t, err)
	}
	ignore := func(any, error) {}
	settle := func(after time.Duration, commands int) {
		b := p.Take()
		require.Len(t, b.Done, commands)
		now += after
		b.Settle(0, make([]member.Command, commands))
	}
	add := func(to interface {
		AddWith(func() time.Duration, []byte, *protocol.ProposeOptions, Done) (bool, error)
	}, o protocol.ProposeOptions) {
		_, err := to.AddWith(clock, []byte("abc"), &o, ignore)
		require.NoError(t, err)
	}

	// The core takes no notice of blind commands.
	add(p, protocol.ProposeOptions{Blind: true})
	add(p, protocol.ProposeOptions{})
	add(p, protocol.ProposeOptions{Mode: protocol.ModeAccepted})
	settle(5, 3)
	require.Equal(t, fit.Load{Commands: 3, Bytes: 9, Blind: 2, Early: 1, Waited: 15}, p.Asked)

	// It has lanes.
	p.Follow(protocol.Proposing{Path: func(o *protocol.ProposeOptions) protocol.Path {
		if o.Blind {
			return 1
		}
		return 0
	}})
	add(q, protocol.ProposeOptions{Blind: true})
	settle(7, 1)
	require.Equal(t, fit.Load{Commands: 4, Bytes: 12, Blind: 3, Early: 1, Waited: 22}, p.Asked)

	body := NewBodyBatch([]byte("abc"), make([]byte, 700), ignore)
	require.NoError(t, p.SetOptions(body, &protocol.ProposeOptions{Blind: true}))
	_, err := p.AddBody(clock, body)
	require.NoError(t, err)
	settle(1, 1)
	require.Equal(t, fit.Load{Commands: 5, Bytes: 715, Blind: 4, Early: 1, Large: 1, LargeBytes: 700, Waited: 23},
		p.Asked)

	// Commands that were accepted have waited until then. What failed or was withdrawn does not count.
	add(p, protocol.ProposeOptions{Blind: true})
	b := p.Take()
	b.Accept(now + 2)
	now += 100
	b.Settle(0, make([]member.Command, 1))
	require.Equal(t, time.Duration(25), p.Asked.Waited)
	before := p.Asked
	add(p, protocol.ProposeOptions{})
	p.Take().Fail(errors.New("failed"))
	add(p, protocol.ProposeOptions{})
	ok, _ := p.Withdraw(p.Last())
	require.True(t, ok)
	settle(1, 1)
	require.Equal(t, before, p.Asked)
}
