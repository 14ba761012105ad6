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
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// handshakes are options whose handshake texts members of other versions know: a change of a text keeps them from
// connecting to this version.
var handshakes = map[string]func(*Options, string){
	"plain":       func(o *Options, name string) {},
	"zones":       with("quorums=zones:3/0/1"),
	"grid":        with("quorums=grid:2"),
	"sizes":       with("quorums=4/2"),
	"majority":    with("quorums=majority"),
	"local":       with("relays=2"),
	"epochs":      epochs(EpochSettings{MinSlots: 32, MaxSlots: 64, EqualShares: true, Policy: "simple", Ban: 1, MaxBan: 2}),
	"some epochs": epochs(EpochSettings{MaxSlots: 128}),
	"code":        with("placement=code", "code-k=2", "extra-whole=1"),
	"lease":       func(o *Options, _ string) { o.LeaseReads = true },
}

func with(settings ...string) func(*Options, string) {
	return func(o *Options, name string) { o.Protocol = Named(name, settings...) }
}

// epochs are those of a struct, for any protocol.
func epochs(e EpochSettings) func(*Options, string) {
	_, v, _ := ISS{Epochs: e}.chosen()
	return with(v.Texts()...)
}

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
		name := d.CmdArgs[0].Key
		o := Options{Self: 1, Cluster: 2, Dir: "d", Protocol: Named(name), Members: members, Listen: []string{"127.0.0.1:1"}}
		change(&o, name)
		c, err := o.complete()
		if err != nil {
			return err.Error() + "\n"
		}
		var lines []string
		r := c.replica(nil)
		for _, s := range toldBefore(r.Settings) {
			lines = append(lines, s.Name+"="+s.Value)
		}
		return strings.Join(slices.Concat(lines, []string{"epochs of a directory: " + r.Epochs, "its quorums: " + r.Quorums}), "\n") + "\n"
	})
}

// toldBefore are the settings that a member tells while its log has no profile.
func toldBefore(s replica.SharedSettings) []replica.Setting {
	return s.Told(&protocol.Profile{}, false, false).All
}

// TestProtocolStructs: a protocol that serves etcd's API has a struct, and that has a field for each of its settings
// that servers have. The fields of Options have the settings that concern no protocol.
func TestProtocolStructs(t *testing.T) {
	structs := map[string]Protocol{}
	for _, p := range []Protocol{Raft{}, CRaft{}, LCR{}, Niagara{}, MultiPaxos{}, ISS{}} {
		name, v, err := p.chosen()
		require.NoError(t, err, name)
		require.True(t, v.IsZero(), "%s: the zero value is every default, and not %s", name, v)
		structs[name] = p
	}
	for _, name := range registry.Serving() {
		p := structs[name]
		require.NotNil(t, p, "%s has no struct", name)
		want := slices.DeleteFunc(slices.Clone(registry.Find(name).Core.Settings.Rows), func(s setting.Any) bool {
			return s.About().Name == "lanes" // Raft with lanes is LCR
		})
		if name == "niagara" {
			want = append(want, common.Instances, common.Leaders)
		}
		if name == "iss" {
			want = append(want, common.Instances)
		}
		if name == "craft" {
			want = append(want, common.CodeK, common.ExtraWhole, common.TrimWhole)
		}
		tagged(t, p, want)
		f, coded := reflect.TypeOf(p).FieldByName("Coded")
		places := registry.Find(name).Placements
		require.Equal(t, name != "raft" && slices.Equal(places, []protocol.Placement{protocol.PlacementCopy, protocol.PlacementCode}), coded, "%s %v", name, f)
	}
	tagged(t, Options{}, append([]setting.Any{common.Fit}, common.Time.Rows...))
}

// tagged checks that the fields of a struct have settings, except for those of experiments.
func tagged(t *testing.T, fields any, want []setting.Any) {
	var names, has []string
	for _, row := range want {
		if about := row.About(); !about.Experiment {
			names = append(names, about.Name)
		}
	}
	for f := range reflect.TypeOf(fields).Fields() {
		if name, ok := f.Tag.Lookup("setting"); ok {
			has = append(has, name)
		}
	}
	require.ElementsMatch(t, names, has, "%T", fields)
}
