package server

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
)

// lines counts the lines of a log with a text.
type lines struct {
	text  string
	count atomic.Int32
}

func (l *lines) Write(b []byte) (int, error) {
	if strings.Contains(string(b), l.text) {
		l.count.Add(1)
	}
	return len(b), nil
}

// TestRefusedZone: a member whose zone is refused publishes its name and client URLs. The refusal is logged once, and
// the zone is proposed again when the membership has changed.
func TestRefusedZone(t *testing.T) {
	logged := &lines{text: protocol.ReasonZones.String()}
	asked := &atomic.Int32{}
	f := start(t, func(c *Config) {
		c.Zone, c.Logger = "eu-west-1", slog.New(slog.NewTextHandler(logged, nil))
		open := c.openLog
		c.openLog = func(o braid.Options, sm braid.DurableStateMachine) (Log, error) {
			l, err := open(o, sm)
			l.(*fakeLog).refuseChange = func(c *braid.Change) protocol.Reason {
				if c.Member.Zone == "" {
					return protocol.ReasonNone
				}
				asked.Add(1)
				return protocol.ReasonZones
			}
			return l, err
		}
	})
	self := func() braid.Member { return *f.cluster.find(0x10) }
	eventually(t, "the name", func() bool { return self().Name == "one" })
	eventually(t, "a refusal", func() bool { return logged.count.Load() == 1 })
	again := asked.Load()
	f.fake.set(func(l *fakeLog) { l.members = append(l.members, braid.Member{ID: 0x20, Name: "two"}) })
	eventually(t, "another proposal", func() bool { return asked.Load() > again })
	f.fake.set(func(l *fakeLog) { l.refuseChange, l.members = nil, l.members[:1] })
	eventually(t, "the zone", func() bool { return self().Zone == "eu-west-1" })
	require.EqualValues(t, 1, logged.count.Load())
	require.Len(t, self().ClientURLs, 1)
}
