package history

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/sim/world"
	"github.com/braidlog/braid/protocol"
)

// begin starts a run of n appends.
func begin(n int) (*History, *world.Base) {
	base := &world.Base{Tick: time.Second}
	h := New(base, &machine.Orders{})
	for range n {
		h.Begin(&Operation{Operation: check.Operation{Kind: check.Append, Key: "k0", Value: "x"}})
	}
	return h, base
}

func TestAnAcknowledgedWriteTookEffect(t *testing.T) {
	h, base := begin(2)
	h.Applied(0, 5, machine.Answer{Done: true, Version: 1})
	h.Applied(0, 9, machine.Answer{}) // by another member: the first position counts
	h.Wrote(h.Ops[0], machine.Answer{Done: true, Version: 1})
	require.True(t, h.Succeeded(h.Ops[0]))
	require.Nil(t, base.Broken)
	require.Len(t, h.Resolve(), 2)
	h.Wrote(h.Ops[0], machine.Answer{Done: true, Version: 2})
	require.ErrorContains(t, base.Broken, "it took effect with")
}

// TestWhatMustNotTakeEffect has the cases in which an effect contradicts the results that the client got.
func TestWhatMustNotTakeEffect(t *testing.T) {
	for want, play := range map[string]func(*History){
		"N6: command 2 took effect at 4": func(h *History) {
			h.Applied(0, 4, machine.Answer{})
			h.Wrote(h.Ops[0], machine.Answer{})
			h.Begin(&Operation{Operation: check.Operation{Kind: check.Append, Key: "k0"}})
			h.Applied(2, 4, machine.Answer{})
		},
		"was answered by: no": func(h *History) {
			h.Refuse(h.Ops[0], errors.New("no"))
			h.Applied(0, 1, machine.Answer{})
		},
		"proposed before it by the same client": func(h *History) {
			h.Ops[1].Before = h.Ops[0]
			h.Applied(1, 1, machine.Answer{})
		},
		"one after which it was to take effect": func(h *History) {
			h.Ops[1].Follows = []*Operation{h.Ops[0]}
			h.Applied(1, 1, machine.Answer{})
		},
	} {
		h, base := begin(2)
		play(h)
		require.ErrorContains(t, base.Broken, want)
	}
}

func TestReadsSeeWhatWasAccepted(t *testing.T) {
	h, base := begin(2)
	h.Accept(h.Ops[0], protocol.Token{})
	h.Accept(h.Ops[1], protocol.Token{})
	h.Applied(0, 3, machine.Answer{})
	before := h.Accepted()
	require.ErrorContains(t, before.Seen(2), "a write at 3 was accepted before")
	require.ErrorContains(t, before.Seen(3), "without command 1")
	require.NoError(t, h.Tokens[0].Seen(3))
	require.Error(t, h.Tokens[0].Seen(2))
	require.Error(t, (&GivenToken{}).Seen(9), "nobody gave it")
	h.Ops[1].Told = true
	require.ErrorContains(t, h.JudgeTold(), "command 1 took no effect")
	h.Applied(1, 7, machine.Answer{})
	require.NoError(t, before.Seen(7))
	require.NoError(t, h.JudgeTold())
	require.Nil(t, base.Broken)
}
