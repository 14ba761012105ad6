package multipaxos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

func profiled(version uint64, settings ...string) protocol.Config {
	return protocol.Config{Members: []protocol.Member{{ID: 1}},
		Profile: protocol.Profile{Version: version, Values: setting.MustParse(settings...)}}
}

// started is a member of a cluster of its own whose directory has a configuration.
func started(t *testing.T, c protocol.Config, m protocol.Mutant) (*Paxos, error) {
	t.Helper()
	return New(protocol.Settings{Self: 1, Instance: 1, Heartbeat: time.Second, ElectionTimeout: 10 * time.Second,
		Mutant: m}, protocol.Recovered{Base: protocol.Base{Config: c}})
}

// A member that restarts has the settings of the log, not those of its flags.
func TestARestartHasTheProfile(t *testing.T) {
	c := profiled(3, "relays=2", "election-timeout=7s")
	s, err := started(t, c, "")
	require.NoError(t, err)
	require.NoError(t, s.Check())
	require.Equal(t, 7*time.Second, s.cfg.ElectionTimeout)
	require.Equal(t, 2, relay.Groups.In(s.cfg.Own))

	s, err = started(t, c, MutantProfileForgotten)
	require.NoError(t, err)
	require.ErrorContains(t, s.Check(), "profile 0, but 3 is active")

	_, err = started(t, profiled(3, "unknown=2"), "")
	var unusable *protocol.ProfileError
	require.ErrorAs(t, err, &unusable)
}

// A Tune changes the settings when its configuration is active. One that was computed on another profile, or that
// changes the quorums, is refused.
func TestTuneOfALeader(t *testing.T) {
	s, err := started(t, profiled(1), "")
	require.NoError(t, err)
	d := &driver{core: s}
	d.until(t, func() bool { return s.role == protocol.Leader })

	d.step(protocol.ProposeChange{Context: 1, Changes: tuneTo(3, "relays=2")})
	require.Equal(t, protocol.ReasonProfile, d.refused(t, 1))
	d.step(protocol.ProposeChange{Context: 2, Changes: tuneTo(2, "quorums=1/1", "relays=2")})
	require.Equal(t, protocol.ReasonSettings, d.refused(t, 2))

	d.step(protocol.ProposeChange{Context: 3, Changes: tuneTo(2, "relays=2", "election-timeout=5s")})
	d.until(t, func() bool { return s.Status().Config.Profile.Version == 2 && !s.Status().Undecided })
	require.Equal(t, 5*time.Second, s.cfg.ElectionTimeout)
	require.Equal(t, 2, relay.Groups.In(s.cfg.Own))
	require.NoError(t, s.Check())
}

func tuneTo(version uint64, settings ...string) []protocol.Change {
	return []protocol.Change{{Kind: protocol.Tune,
		Profile: &protocol.Profile{Version: version, Values: setting.MustParse(settings...)}}}
}

// driver runs a core whose disk is done at once.
type driver struct {
	core *Paxos
	now  time.Duration
	out  protocol.Effects
	all  []protocol.Rejection
}

func (d *driver) step(in protocol.Input) {
	d.out = protocol.Effects{}
	d.core.Step(d.now, in, &d.out)
	d.all = append(d.all, d.out.Reject...)
	if seq := d.out.Seq; seq > 0 && len(d.out.Persist) > 0 {
		d.step(protocol.Persisted{Seq: seq})
	}
}

func (d *driver) until(t *testing.T, done func() bool) {
	t.Helper()
	for range 1000 {
		if done() {
			return
		}
		d.now += time.Second
		d.step(protocol.Tick{})
	}
	require.Fail(t, "it did not happen", "%+v", d.core.Status())
}

func (d *driver) refused(t *testing.T, context uint64) protocol.Reason {
	t.Helper()
	for _, r := range d.all {
		if r.Context == context {
			return r.Reason
		}
	}
	require.Fail(t, "it was not refused")
	return protocol.ReasonNone
}
