package braid

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/protocol/setting"
)

// compared are the options that members compare when they connect, each with another value
// than the default. Instances is compared too, by replica, while a cluster is new.
var compared = map[string]func(*Options){
	"Protocol":        func(o *Options) { o.Protocol = "craft" },
	"Order":           func(o *Options) { o.Order = OrderNiagara },
	"Leaders":         func(o *Options) { o.Leaders = LeadersSpread },
	"Placement":       func(o *Options) { o.Placement = PlacementCode },
	"CodeK":           func(o *Options) { o.CodeK = 2 },
	"ElectionTimeout": func(o *Options) { o.ElectionTimeout = 2 * time.Second },
	"Settings": func(o *Options) {
		o.Settings = setting.MustParse("epochs=slots 64-1024, shares by load, policy simple, bans 8-256")
	},
	"LeaseReads": func(o *Options) { o.LeaseReads = true },
}

// local are the options that may differ: each concerns its member alone, or what a member does as
// long as it leads. Who adds an option decides where it belongs, and explains why on
// docs/using/settings.md.
var local = []string{
	"Self", "Cluster", "Dir", "Members", "Join", "Listen", "Listeners", "TLS", "Heartbeat", "ExtraWhole", "TrimWhole", "Limits",
	"Experiment", "FS", "Logger", "Answer", "Instances",
}

func TestEveryOptionIsComparedOrLocal(t *testing.T) {
	for f := range reflect.TypeFor[Options]().Fields() {
		if (compared[f.Name] != nil) == slices.Contains(local, f.Name) {
			t.Errorf("option %s must be in one of the two lists", f.Name)
		}
	}
	base := Options{Self: 1, Cluster: 2, Dir: "d", Order: OrderNiagara, Members: []Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:1"}}}}
	settings := func(change func(*Options)) []replica.Setting {
		o := base
		if change != nil {
			change(&o)
		}
		if err := o.complete(); err != nil {
			t.Fatal(err)
		}
		return o.settings()
	}
	for name, change := range compared {
		plain := settings(nil)
		if name == "Order" {
			plain = settings(func(o *Options) { o.Order = OrderSingle })
		}
		if name == "CodeK" {
			plain = settings(func(o *Options) { o.Placement = PlacementCode })
			change = func(o *Options) { o.Placement, o.CodeK = PlacementCode, 2 }
		}
		if name == "Settings" {
			iss := func(o *Options) { o.Protocol, o.Order = "iss", OrderSingle }
			plain = settings(iss)
			epochs := change
			change = func(o *Options) { iss(o); epochs(o) }
		}
		if slices.Equal(plain, settings(change)) {
			t.Errorf("another %s is not seen", name)
		}
	}
}
