package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/braidlog/braid/protocol"
)

// TestOriginsAreCompared runs the scripts of testdata/origin.
//
//	member id=1 [joins]          begins without a log
//	link from=1 to=2             a handshake, as far as lineages and births go
//	log id=1 lineage=5           what it has applied is of that lineage
//
// When a member learns something, it compares origins with members that it met before.
func TestOriginsAreCompared(t *testing.T) {
	datadriven.Walk(t, "testdata/origin", func(t *testing.T, path string) {
		s := origins{members: map[protocol.MemberID]*Handshakes{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			arg := func(key string) (n uint64) {
				if d.HasArg(key) {
					d.ScanArgs(t, key, &n)
				}
				return n
			}
			switch id := protocol.MemberID(arg("id")); d.Cmd {
			case "member":
				h, _ := handshakesOf(id)
				h.birth.Unknown = d.HasArg("joins")
				h.checked = h.Origin()
				s.members[id] = h
			case "link":
				s.link(protocol.MemberID(arg("from")), protocol.MemberID(arg("to")))
			case "log":
				s.members[id].Descends(arg("lineage"))
				s.check(id)
			default:
				d.Fatalf(t, "unknown command")
			}
			return s.out.String()
		})
	})
}

type origins struct {
	members map[protocol.MemberID]*Handshakes
	out     strings.Builder
}

// link makes the handshake of two members in the order in which package transport does.
func (s *origins) link(from, to protocol.MemberID) {
	a, b := s.members[from], s.members[to]
	toldA, toldB := a.Origin(), b.Origin()
	err := a.Relate(to, toldB.Lineage, 0)
	if err == nil {
		err = b.Relate(from, a.Lineage(), 0)
	}
	if err == nil && !toldB.Birth.Unknown {
		_, err = a.Born(toldB.Birth.State)
	}
	if err == nil && !toldA.Birth.Unknown {
		_, err = b.Born(toldA.Birth.State)
	}
	if err != nil {
		fmt.Fprintf(&s.out, "no link: %v\n", err)
	}
	s.check(from)
	s.check(to)
}

func (s *origins) check(id protocol.MemberID) {
	h := s.members[id]
	for _, other := range h.Unchecked() {
		err := h.Compare(other, s.members[other].Origin())
		if theirs := s.members[other].Compare(id, h.Origin()); (err == nil) != (theirs == nil) {
			fmt.Fprintf(&s.out, "they do not agree: %v, %v\n", err, theirs)
		}
		if err == nil {
			fmt.Fprintf(&s.out, "%s keeps the link with %s\n", id, other)
		} else {
			fmt.Fprintf(&s.out, "%s ends the link with %s: %v\n", id, other, err)
		}
	}
}
