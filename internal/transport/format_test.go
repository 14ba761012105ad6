package transport

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidlog/braid/internal/format"
)

const later = format.First + 1

// speaking are the settings of a member that writes a format and knows another one.
func speaking(written *atomic.Int32, newest int) func(*Options, *testHandler) {
	return func(o *Options, _ *testHandler) {
		o.Writes = func(_ uint64, to int) error {
			written.Store(int32(to))
			return nil
		}
		o.Settings = func() Told {
			return Told{All: []Setting{{"color", "blue"}}, Format: Format{Written: int(written.Load()), Newest: newest}}
		}
	}
}

// There is no link with a member that does not know the format of the log, whichever side dials, and both sides report
// that with the remedy. A member that only has not applied the change of the format yet has a link.
func TestMembersKnowTheFormatOfTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		dialerWrites, dialerKnows, otherWrites, otherKnows int
		dialer, other                                      string // what they say; "": there is a link
	}{
		"one knows a later one":  {0, 0, format.First, later, "", ""},
		"both":                   {later, later, later, later + 1, "", ""},
		"one has not applied it": {format.First, later, later, later, "", ""},
		"the other does not know": {later, later, format.First, format.First,
			"run a version there", "run a version here"},
		"the dialer does not know": {format.First, format.First, later, later,
			"run a version here", "run a version there"},
		"the dialer knows too much": {later + 1, later + 1, later, later, "run a version there", "run a version here"},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			var dialer, other atomic.Int32
			dialer.Store(int32(c.dialerWrites))
			other.Store(int32(c.otherWrites))
			a := start(t, 1, calm, "", speaking(&dialer, c.dialerKnows))
			b := start(t, 2, calm, "", speaking(&other, c.otherKnows))
			b.SetPeers([]Peer{{ID: 1}})
			a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
			if c.dialer == "" {
				a.expectUp(t, 2)
				if got := a.Stats().Peers[0].Format; got != max(format.First, c.otherKnows) {
					t.Errorf("the other member knows format %d", got)
				}
				want := format.Above(max(c.dialerWrites, c.otherWrites))
				if got := a.frameFormat(); int(got) != want {
					t.Errorf("frames have format %d", got)
				}
				return
			}
			a.expectRefused(t, 2, ReasonVersion, false)
			if text := a.Stats().Peers[0].LastError; !strings.Contains(text, c.dialer) {
				t.Errorf("the dialer says %q, not %q", text, c.dialer)
			}
			eventually(t, "the other side says it", func() bool { return strings.Contains(b.logs.String(), c.other) })
		})
	}
}

// A dialer of a version that knows no formats gets a link until there is a later one.
func TestAVersionWithoutFormats(t *testing.T) {
	for _, written := range []int32{format.First, later} {
		var writes atomic.Int32
		writes.Store(written)
		a := start(t, 1, calm, "", speaking(&writes, later))
		a.SetPeers([]Peer{{ID: 2}})
		conn, err := net.Dial("tcp", a.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		text := "color=blue\n"
		h := hello{purpose: forFrames, cluster: testCluster, from: 2, to: 1, settings: markOf(text),
			features: ownFeatures(0)}
		if _, err := conn.Write(append(h.encode(), text...)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, replySize)
		if _, err := io.ReadFull(conn, b); err != nil {
			t.Fatal(err)
		}
		want := Reason(0)
		if written == later {
			want = ReasonVersion
		}
		if r, ok := decodeReply(b); !ok || r.reason != want || r.origin.formats {
			t.Errorf("writing format %d: answer %+v", written, r)
		}
	}
}

// A member that begins to write a format has no link any more with one that does not know it.
func TestALaterFormatEndsLinks(t *testing.T) {
	var writes, first atomic.Int32
	a := start(t, 1, calm, "", speaking(&writes, later))
	b := start(t, 2, calm, "", speaking(&first, format.First))
	b.SetPeers([]Peer{{ID: 1}})
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
	a.expectUp(t, 2)
	writes.Store(later)
	a.WriteFormat(later)
	a.expectDown(t, 2)
	a.expectRefused(t, 2, ReasonVersion, false)
}

// Frames have the format that their sender writes. A receiver that does not write it refuses them.
func TestFramesHaveTheFormat(t *testing.T) {
	var writes atomic.Int32
	a := start(t, 1, calm, "", speaking(&writes, later))
	b := start(t, 2, calm, "", func(o *Options, h *testHandler) {
		speaking(&writes, later)(o, h)
		h.request = func(_ context.Context, _ uint64, q []byte) ([]byte, error) { return q, nil }
	})
	b.SetPeers([]Peer{{ID: 1, Addrs: []string{a.addr}}})
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
	a.expectUp(t, 2)
	b.expectUp(t, 1)
	for range 2 {
		if !a.Send(2, 0, [][]byte{[]byte("x")}) {
			t.Fatal("not sent")
		}
		get(t, b.frames, "frame")
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		if answer, err := a.Request(ctx, 2, []byte("q")); err != nil || string(answer) != "q" {
			t.Errorf("answer %q, %v", answer, err)
		}
		cancel()
		a.WriteFormat(later)
		b.WriteFormat(later)
		if got := a.frameFormat(); got != 1 {
			t.Errorf("frames have format %d", got)
		}
	}
	head := appendHeader(nil, header{kind: kindPing, format: 1})
	for known, ok := range map[byte]bool{0: false, 1: true} {
		conn := &scripted{data: head, sizes: rand.New(rand.NewPCG(1, 1))}
		r := newReader(t.Context(), conn, 100, time.Minute, &counters{total: &totals{}})
		r.format = func() byte { return known }
		if _, err := r.header(); (err == nil) != ok {
			t.Errorf("format 1, known up to %d: %v", known, err)
		}
	}
}
