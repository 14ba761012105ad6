package braid

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// compared are the options that members compare when they connect, each with another value than the default. What is
// compared of the protocol's settings is declared with them ([setting.Setting].Agree).
var compared = map[string]func(*Options){
	"Protocol":        func(o *Options) { o.Protocol = MultiPaxos{} },
	"ElectionTimeout": func(o *Options) { o.ElectionTimeout = 2 * time.Second },
	"LeaseReads":      func(o *Options) { o.LeaseReads = true },
	"Fit":             func(o *Options) { o.Fit = protocol.FitOn },
}

// local are the options that may differ: each concerns its member alone, or what a member does as long as it leads. An
// option that is added belongs to one of the two lists, and docs/using/settings.md says why.
var local = []string{
	"Self", "Cluster", "Dir", "Members", "Join", "PeerURLs", "Listen", "Listeners", "Dial", "TLS", "Heartbeat", "Limits", "Experiment", "FS", "Logger", "Answer",
}

func TestEveryOptionIsComparedOrLocal(t *testing.T) {
	require.LessOrEqual(t, reflect.TypeFor[Options]().NumField(), 20, "a program reads all options")
	for f := range reflect.TypeFor[Options]().Fields() {
		if (compared[f.Name] != nil) == slices.Contains(local, f.Name) {
			t.Errorf("option %s must be in one of the two lists", f.Name)
		}
	}
	settings := func(change func(*Options)) []replica.Setting {
		o := Options{Self: 1, Cluster: 2, Dir: "d", Members: []Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:1"}}}}
		change(&o)
		c, err := o.complete()
		require.NoError(t, err)
		return toldBefore(c.settings())
	}
	plain := settings(func(*Options) {})
	for name, change := range compared {
		require.NotEqual(t, plain, settings(change), "another %s is not seen", name)
	}
	// What may differ in a protocol is not seen, and the rest is.
	for text, same := range map[string]bool{
		"extra-whole=1": true, "trim-whole=true": true, "instances=7": true, "code-k=2": false, "leaders=together": false, "placement=copy": false,
	} {
		v := []string{"placement=code"}
		was := settings(func(o *Options) { o.Protocol = Named("niagara", v...) })
		is := settings(func(o *Options) { o.Protocol = Named("niagara", append(v, text)...) })
		require.Equal(t, same, slices.Equal(was, is), text)
	}
}

// TestAProfileHasTheSettingsOfItsCore: behind a seal they are those of another protocol, and so are those before it.
func TestAProfileHasTheSettingsOfItsCore(t *testing.T) {
	o := Options{Self: 1, Cluster: 2, Members: []Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:1"}}}, Dir: "d",
		Protocol: CRaft{K: 2}}
	c, err := o.complete()
	require.NoError(t, err)
	s := replica.Status{Applied: order.Begin(1, false)}
	first := protocol.Profile{Version: 1, Values: c.choice.Profile()}
	does, err := c.choice.Switch(&first, 1, "iss", map[string]string{"relays": "2", "quorums": "majority"})
	require.NoError(t, err)
	sealed := does.Seal.Begin(&protocol.Config{Profile: first})
	s.Config.Profile = sealed.Profile.Next(setting.MustParse("relays=3").Over(sealed.Profile.Values), 0)
	p := c.profile(&s)
	require.Equal(t, []any{uint64(3), "iss", "3"}, []any{p.Version, p.Protocol, p.Settings["relays"]})
	require.NotContains(t, p.Settings, "lanes")
	require.Equal(t, []Profile{
		{Version: 1, Protocol: "craft", Settings: map[string]string{"placement": "code", "code-k": "2",
			"lanes": "false"}},
		{Version: 2, Settings: map[string]string{"relays": "2"}},
	}, p.Earlier)
	under := c.under(&s)
	require.Equal(t, "iss", under.Name)
	s.Config.Profile = sealed.Profile.Next(setting.MustParse("quorums=2/2").Over(sealed.Profile.Values), 0)
	s.Config.Members = o.Members
	require.NotEmpty(t, (&Node{opt: c}).tolerance(&s.Config))
}

// TestProgressAcrossASeal: the instances may be those behind a seal that is not applied yet, or is applied already.
func TestProgressAcrossASeal(t *testing.T) {
	s := replica.Status{Applied: order.Begin(2, true), Instances: []protocol.Status{{Instance: 3, Commit: 7}}}
	require.Equal(t, []InstanceProgress{{Instance: 3, Waiting: 7}}, progress(&s))
}
