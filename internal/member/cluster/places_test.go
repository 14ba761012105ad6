package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// TestPlaces plays the scripts in testdata/links: where a member dials the others. Each member is written ID=URL or
// ID=(URL,URL).
func TestPlaces(t *testing.T) {
	datadriven.Walk(t, "testdata/links", func(t *testing.T, path string) {
		s := &dialed{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

// dialed is a member of a script.
type dialed struct{ l *Links }

func (s *dialed) run(t *testing.T, d *datadriven.TestData) string {
	var members []protocol.Member
	for _, a := range d.CmdArgs {
		if a.Key != "at" {
			members = append(members, protocol.Member{ID: idOf(t, a.Key), PeerURLs: a.Vals})
		}
	}
	at := 0
	d.MaybeScanArgs(t, "at", &at)
	now, said := time.Duration(at)*time.Millisecond, ""
	switch d.Cmd {
	case "start": // member 1, with an election timeout of one second
		s.l = NewLinks(1, time.Second, members)
	case "mutant":
		s.l.Mutant = mutant.Name(strings.TrimSpace(d.Input))
	case "follow":
		s.l.Follow(now, &protocol.Config{Members: members})
	case "told":
		for i := range members {
			said += fmt.Sprintln("changes:", s.l.Welcome(&members[i]))
		}
	case "missed":
		for i := range members {
			said += fmt.Sprintln("changes:", s.l.Missed(now, members[i].ID))
		}
	case "up":
		for i := range members {
			_, news := s.l.Up(members[i].ID)
			said += fmt.Sprintln("news:", news)
		}
	case "down":
		for i := range members {
			s.l.Down(members[i].ID)
		}
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	if err := s.l.Check(); err != nil {
		d.Fatalf(t, "%v", err)
	}
	said += fmt.Sprintf("own %s\n", strings.Join(s.l.Own(), ","))
	for _, p := range s.l.Peers() {
		said += fmt.Sprintf("%d %s\n", p.ID, strings.Join(p.URLs, ","))
	}
	return said
}

func idOf(t *testing.T, s string) (id protocol.MemberID) {
	if _, err := fmt.Sscan(s, (*uint64)(&id)); err != nil {
		t.Fatal(err)
	}
	return id
}
