package registry_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// running is a log that began as c and has a profile.
type running struct {
	c         registry.Choice
	profile   protocol.Profile
	instances int
}

func began(t testing.TB, name string, flags ...string) *running {
	t.Helper()
	c, err := registry.Find(name).Choose(setting.MustParse(flags...), 3)
	require.NoError(t, err)
	return &running{c, protocol.Profile{Version: 1, Values: c.Profile()}, c.Instances()}
}

// carry makes what was returned for a switch.
func (r *running) carry(t testing.TB, s registry.Switching) {
	t.Helper()
	does, err := r.c.Steps(&r.profile, r.instances, &s, 0)
	require.NoError(t, err)
	if does.Tune != nil {
		r.profile = *does.Tune
	}
	if does.Instances > 0 {
		r.instances = does.Instances
	}
	if does.Seal != nil {
		require.Equal(t, r.profile.Version+1, does.Seal.Profile.Version)
		begin := does.Seal.Begin(&protocol.Config{Profile: r.profile})
		r.profile, r.instances = begin.Profile, does.Seal.Instances
	}
}

func (r *running) String() string {
	now := r.c.At(&r.profile, r.instances)
	return fmt.Sprintf("%s: profile %d, core %q, instances %d, %s", now.Name, r.profile.Version, r.profile.Core,
		r.instances, r.profile.Values)
}

func steps(s *registry.Switching) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Tune)) {
		fmt.Fprintf(&b, "tune %s=%s\n", name, s.Tune[name])
	}
	if x := s.Seal; x != nil {
		fmt.Fprintf(&b, "seal: profile %d, core %s, instances %d, merged %v, %s\n", x.Profile.Version, x.Profile.Core,
			x.Instances, x.Merged, x.Profile.Values)
	}
	if s.Nothing() {
		return "nothing\n"
	}
	return b.String()
}

// TestSwitch: "switch PROTOCOL" begins a log as PROTOCOL with settings with=(NAME=VALUE…). Each line is the protocol
// that it changes to, with settings. It prints what that takes, and the log after it.
func TestSwitch(t *testing.T) {
	datadriven.RunTest(t, "testdata/switches", func(t *testing.T, d *datadriven.TestData) string {
		var flags []string
		for _, a := range d.CmdArgs {
			if a.Key == "with" {
				flags = a.Vals
			}
		}
		r := began(t, d.CmdArgs[0].Key, flags...)
		var b strings.Builder
		for _, line := range lines(d.Input) {
			words, set := strings.Fields(line), map[string]string{}
			for _, w := range words[1:] {
				name, value, _ := strings.Cut(w, "=")
				set[name] = value
			}
			if words[0] == "tune" {
				r.carry(t, registry.Switching{Tune: set})
				fmt.Fprintln(&b, r)
				continue
			}
			s, err := r.c.Switch(&r.profile, r.instances, words[0], set)
			if err != nil {
				require.True(t, errors.As(err, new(*setting.Error)), "%T", err)
				fmt.Fprintln(&b, err)
				continue
			}
			b.WriteString(steps(&s))
			r.carry(t, s)
			fmt.Fprintln(&b, r)
			require.Equal(t, r.c.At(&r.profile, r.instances).Name, s.To.Name)
			again, err := r.c.Switch(&r.profile, r.instances, words[0], set)
			require.NoError(t, err)
			require.True(t, again.Nothing(), "%s again: %s", line, steps(&again))
		}
		return b.String()
	})
}

// TestEveryServerSwitchesToEveryOther, and from there to each of them.
func TestEveryServerSwitchesToEveryOther(t *testing.T) {
	family := func(name string) *protocol.Info { return registry.Find(name).Core }
	for _, from := range registry.Serving() {
		for _, to := range registry.Serving() {
			for _, last := range registry.Serving() {
				r, at := began(t, from, "election-timeout=2s"), from
				for _, next := range []string{to, last, from} {
					s, err := r.c.Switch(&r.profile, r.instances, next, nil)
					require.NoError(t, err, "%s, %s, %s", from, to, last)
					require.Equal(t, at == next, s.Nothing(), "%s to %s: %s", at, next, steps(&s))
					require.Equal(t, family(at) != family(next), s.Seal != nil)
					if s.Seal != nil {
						s.Seal.Members = protocol.Config{Members: []protocol.Member{{ID: 1}}}
						e := protocol.NewSeal(*s.Seal)
						read, err := protocol.DecodeSeal(e.Payload)
						require.NoError(t, err)
						require.Equal(t, *s.Seal, read)
					}
					r.carry(t, s)
					now := r.c.At(&r.profile, r.instances)
					require.Equal(t, next, now.Name)
					require.Equal(t, next, s.To.Name)
					require.Contains(t, r.profile.Values.String(), "election-timeout=2s")
					_, err = now.Table().Complete(r.profile.Values)
					require.NoError(t, err)
					at = next
				}
			}
		}
	}
}
