package braid

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol/setting"
)

// handshakes are options whose handshake texts members of other versions know: a change of a text keeps them from
// connecting to this version.
var handshakes = map[string]func(*Options){
	"plain":    func(*Options) {},
	"zones":    func(o *Options) { o.Settings = quorums("zones:3/0/1") },
	"grid":     func(o *Options) { o.Settings = quorums("grid:2") },
	"sizes":    func(o *Options) { o.Settings = quorums("4/2") },
	"majority": func(o *Options) { o.Settings = quorums("majority") },
	"local":    func(o *Options) { o.Settings = setting.MustParse("relays=2") },
	"epochs": func(o *Options) {
		o.Settings, _ = ISS{Epochs: EpochSettings{MinSlots: 32, MaxSlots: 64, EqualShares: true, Policy: "simple", Ban: 1, MaxBan: 2}}.Settings()
	},
	"some epochs": func(o *Options) { o.Settings, _ = ISS{Epochs: EpochSettings{MaxSlots: 128}}.Settings() },
	"code":        func(o *Options) { o.Placement, o.CodeK, o.ExtraWhole = PlacementCode, 2, 1 },
	"lease":       func(o *Options) { o.LeaseReads = true },
}

func quorums(text string) Settings { return setting.MustParse("quorums=" + text) }

// TestHandshakes: the settings that members compare when they connect are told by the same names and texts as ever.
func TestHandshakes(t *testing.T) {
	datadriven.RunTest(t, "testdata/handshakes", func(t *testing.T, d *datadriven.TestData) string {
		change, ok := handshakes[strings.ReplaceAll(d.CmdArgs[1].Key, "-", " ")]
		if !ok {
			d.Fatalf(t, "unknown options %q", d.CmdArgs[1].Key)
		}
		members := []Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:1"}}}
		for id := MemberID(2); id <= 5; id++ {
			members = append(members, Member{ID: id, PeerURLs: []string{fmt.Sprintf("http://127.0.0.1:%d", id)}})
		}
		o := Options{Self: 1, Cluster: 2, Dir: "d", Protocol: d.CmdArgs[0].Key, Members: members, Listen: []string{"127.0.0.1:1"}}
		change(&o)
		if err := o.complete(); err != nil {
			return err.Error() + "\n"
		}
		var lines []string
		for _, s := range o.settings() {
			lines = append(lines, s.Name+"="+s.Value)
		}
		return strings.Join(slices.Concat(lines, []string{"epochs of a directory: " + o.epochs(), "its quorums: " + o.quorums().String()}), "\n") + "\n"
	})
}

// TestProtocolStructs: the struct that is named after a protocol has a field for each of its settings that servers
// have.
func TestProtocolStructs(t *testing.T) {
	for protocol, options := range map[string]any{"multi-paxos": MultiPaxos{}, "iss": ISS{}} {
		table := registry.Find(protocol).Core.Settings
		v, err := table.Of(options)
		require.NoError(t, err, protocol)
		require.True(t, v.IsZero(), "%s: the zero value is every default, and not %s", protocol, v)
		for _, row := range table.Rows {
			about, found := row.About(), false
			for f := range reflect.TypeOf(options).Fields() {
				found = found || f.Tag.Get("setting") == about.Name
			}
			require.True(t, found || about.Experiment, "%s has no field of %s", protocol, about.Name)
		}
	}
}
