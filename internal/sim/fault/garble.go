package fault

import (
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

var nonsenseProposed = count.New("nonsense_proposed", "nonsense proposed")

var faultGarble = &Fault{Name: "garble", Thinned: true, Source: fromFreeze,
	Does: "a member proposes entries that no member should propose"}

func init() {
	faultGarble.Draw = (*Settings).drawGarble
	faultGarble.Strike = garble
}

// drawGarble draws whether members propose invalid entries.
func (s *Settings) drawGarble(d draw.Chance) {
	if d.Yes(0.2) {
		s.Faults[faultGarble] = s.Election * time.Duration(1+d.Below(10))
	}
}

// garble lets a member propose an entry that no member can apply. The entry's digest is valid.
func garble(w *World, m *node.Member) {
	e := protocol.Entry{Kind: protocol.EntryBatch, Count: 1, Payload: protocol.AppendCommand(nil, []byte("garbled"))}
	switch w.Pick(6) {
	case 0:
		e.Count++
	case 1:
		e.Payload = append(e.Payload, 1)
	case 2:
		e.Payload = e.Payload[:len(e.Payload)-1]
	case 3:
		e.Count = 1 << 31
	case 4:
		e.Low = 1
	case 5:
		e = protocol.NewReshape(protocol.MaxInstances + 1 + w.Pick(1000))
	}
	e.SealPayload()
	e.Seal(0, 0, make([]byte, protocol.HeadSize))
	w.Count(nonsenseProposed)
	w.Tracef("FAULT %s proposes nonsense", m.ID)
	m.WhenAwake(func() {
		if s := m.InForce[w.Pick(len(m.InForce))]; m.Up {
			s.Step(protocol.Propose{Entries: []protocol.Entry{e}})
		}
	})
}
