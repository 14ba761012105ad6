package paxos_test

import (
	"testing"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
	"github.com/braidlog/braid/protocol/paxos"
	"github.com/braidlog/braid/protocol/paxos/epochs"
)

// short are epochs that end soon.
var short = epochs.Settings{MinSlots: 4, MaxSlots: 16, Policy: epochs.Combined, Ban: 2, MaxBan: 8}

func issFactory(change func(*protocol.Settings)) conformance.Factory {
	return func(self protocol.Session, rec protocol.Recovered) (protocol.Core, error) {
		c := protocol.Settings{
			Self: self.Member, Session: self, Instance: 1,
			Heartbeat: 10 * conformance.Pace, ElectionTimeout: 100 * conformance.Pace,
		}
		if change != nil {
			change(&c)
		}
		return paxos.NewISS(c, short, rec)
	}
}

func deriveShort(c protocol.Config) protocol.Derived { return epochs.New(short, c) }

func TestISSConformance(t *testing.T) {
	for name, change := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.RunWith(t, paxos.ISSCodec, issFactory(change), conformance.Options{Skips: true, Derive: deriveShort})
		})
	}
}

// The net watches over who holds bodies, those of cells too.
func TestISSConformanceWithBodies(t *testing.T) {
	for name, change := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.RunWith(t, paxos.ISSCodec, issFactory(change), conformance.Options{Bodies: 500, OneVoter: true, Skips: true, Derive: deriveShort})
		})
	}
}
