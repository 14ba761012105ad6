package client

import (
	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/protocol"
)

// If the protocol can respond before commands are applied, some writes ask for that. Such a response promises that
// the write takes effect once, whatever happens afterwards.

// earlyWrites draws the writes that ask for an early response, and the use of tokens.
var earlyWrites = draw.New("early writes")

// options returns the options of a client's write; nil: none. A compare-and-swap needs its result, and a probe waits
// until the write is applied.
func (w *Clients) options(op *history.Operation) *protocol.ProposeOptions {
	l := &w.own.Load
	if w.Set.Keyed || w.Set.ByKey() {
		return &protocol.ProposeOptions{Keys: w.drawKeys(op.Key)}
	}
	if l.Early+l.Blind == 0 || w.Calm {
		return nil
	}
	o := protocol.ProposeOptions{After: w.drawAfter(op)}
	switch {
	case op.Kind == check.Swap:
	case l.Early > 0 && w.From(earlyWrites).Yes(l.Early):
		o.Mode = protocol.ModeAccepted
	case l.Blind > 0 && w.From(earlyWrites).Yes(l.Blind):
		o.Blind = true
	}
	if o.Plain() {
		return nil
	}
	return &o
}

// drawKeys draws the keys that a client names for its command. Sometimes it names none, or also one of another group:
// then the command must be refused.
func (w *Clients) drawKeys(key string) []uint64 {
	keys := machine.KeysOf(key)
	if w.Set.ByKey() && !w.Calm && w.From(earlyWrites).Yes(0.1) {
		if w.From(earlyWrites).Yes(0.5) {
			return nil // it may touch any
		}
		return append(keys, machine.KeysOf("k0")...)
	}
	if w.Calm || !w.From(earlyWrites).Yes(w.own.Load.Astray) {
		return keys
	}
	if w.From(earlyWrites).Yes(0.5) {
		return nil
	}
	return append(keys, keys[0]+1)
}
