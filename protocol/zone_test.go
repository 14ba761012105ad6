package protocol

import (
	"strings"
	"testing"
)

func TestZones(t *testing.T) {
	for name, valid := range map[string]bool{
		"": true, "eu-west-1": true, "Rack_7.b": true, strings.Repeat("x", MaxZoneBytes): true,
		strings.Repeat("x", MaxZoneBytes+1): false,
		"a b":                               false, "a,b": false, "a=b": false, "a/b": false, "é": false, "a\n": false,
	} {
		if err := CheckZone(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// An update sets the zone and leaves the rest, and one without a zone leaves the zone.
func TestUpdateOfAZone(t *testing.T) {
	c := Config{Members: []Member{{ID: 1, Name: "a", PeerURLs: []string{"http://a"}}, {ID: 2}}}
	update := func(m Member) Reason {
		next, reason := c.Changed([]Change{{Kind: UpdateMember, Member: m}})
		if reason == ReasonNone {
			c = next
		}
		return reason
	}
	if reason := update(Member{ID: 1, Zone: "b c"}); reason != ReasonZone {
		t.Errorf("a zone that is no name: %s", reason)
	}
	if reason := update(Member{ID: 1, Zone: "b"}); reason != ReasonNone {
		t.Error(reason)
	}
	if reason := update(Member{ID: 1, Name: "x"}); reason != ReasonNone {
		t.Error(reason)
	}
	if m := c.Members[0]; m.Zone != "b" || m.Name != "x" || len(m.PeerURLs) != 1 {
		t.Errorf("%+v", m)
	}
	read, err := DecodeConfig(EncodeConfig(c))
	if err != nil || !read.Equal(&c) {
		t.Errorf("%+v, %v", read, err)
	}
	read.Members[0].Zone = "d"
	if read.Equal(&c) || read.SameMembers(&c) {
		t.Error("configurations that differ in a zone are not equal")
	}
}

func TestNear(t *testing.T) {
	c := Config{Members: []Member{{ID: 1, Zone: "a"}, {ID: 2, Zone: "a"}, {ID: 3, Zone: "b"}, {ID: 4}, {ID: 5}}}
	for _, p := range [][2]MemberID{{1, 3}, {4, 5}, {4, 4}, {1, 4}, {1, 6}} {
		if c.Near(p[0], p[1]) || c.Near(p[1], p[0]) {
			t.Errorf("%v are near", p)
		}
	}
	if !c.Near(1, 2) || !c.Near(2, 1) {
		t.Error("members of a zone are not near")
	}
}
