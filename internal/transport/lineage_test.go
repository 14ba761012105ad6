package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
)

// origin is where a member's log comes from, in these tests.
type origin struct{ lineage, founders uint64 }

// options let a member have links with members of the same log, as far as both know it. told receives the origins that
// others send.
func (o origin) options(told chan origin) func(*Options, *testHandler) {
	return func(opt *Options, _ *testHandler) {
		opt.Founders = o.founders
		opt.Lineage = func() uint64 { return o.lineage }
		opt.CheckOrigin = func(_, lineage, founders uint64) (bool, error) {
			told <- origin{lineage, founders}
			differ := func(a, b uint64) bool { return a != 0 && b != 0 && a != b }
			if differ(lineage, o.lineage) || differ(founders, o.founders) {
				return false, errors.New("another log")
			}
			return true, nil
		}
	}
}

// TestOriginsAreSent: members of two logs get no link, whichever side dials, and both sides learn the reason.
func TestOriginsAreSent(t *testing.T) {
	for name, c := range map[string]struct {
		a, b  origin
		apart bool
	}{
		"nothing is known":   {origin{}, origin{}, false},
		"one log":            {origin{5, 7}, origin{5, 7}, false},
		"one joined":         {origin{5, 0}, origin{5, 7}, false},
		"two lineages":       {origin{5, 7}, origin{6, 7}, true},
		"two lists":          {origin{0, 7}, origin{0, 8}, true},
		"two lists, one new": {origin{0, 7}, origin{6, 8}, true},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			atA, atB := make(chan origin, 1000), make(chan origin, 1000)
			a, b := start(t, 1, calm, "", c.a.options(atA)), start(t, 2, calm, "", c.b.options(atB))
			a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
			b.SetPeers([]Peer{{ID: 1, Addrs: []string{a.addr}}})
			if got := get(t, atA, "an origin"); got != c.b {
				t.Errorf("told %+v", got)
			}
			if !c.apart {
				a.expectUp(t, 2)
				b.expectUp(t, 1)
				return
			}
			a.expectRefused(t, 2, ReasonLineage, false)
			b.expectRefused(t, 1, ReasonLineage, false)
		})
	}
}

// TestAVersionWithoutFoundersIsTheSame: a dialer that supports lineages and no founders sends and receives lineages
// alone.
func TestAVersionWithoutFoundersIsTheSame(t *testing.T) {
	noLeaks(t)
	told := make(chan origin, 10)
	a := start(t, 1, calm, "", origin{5, 7}.options(told))
	a.SetPeers([]Peer{{ID: 2}})
	conn, err := net.Dial("tcp", a.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	h := hello{purpose: forFrames, cluster: testCluster, from: 2, to: 1, settings: markOf(testText),
		origin: originFields{lineages: true}}
	if _, err := conn.Write(append(h.encode(), testText...)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, replySize+lineageSize)
	if _, err := io.ReadFull(conn, b); err != nil {
		t.Fatal(err)
	}
	if r, ok := decodeReply(b[:replySize]); !ok || r.reason != 0 || r.origin != (originFields{lineages: true}) ||
		binary.LittleEndian.Uint64(b[replySize:]) != 5 {
		t.Fatalf("answer %+v, lineage %x", r, b[replySize:])
	}
	word := binary.LittleEndian.AppendUint64([]byte{agreed}, 5)
	if _, err := conn.Write(append(appendHeader(word, header{kind: kindFrame, length: 5}), "hello"...)); err != nil {
		t.Fatal(err)
	}
	if got := get(t, told, "an origin"); got != (origin{5, 0}) {
		t.Errorf("told %+v", got)
	}
	get(t, a.frames, "frame")
}

// TestAProbeLeavesRequestsAlone: a request that is in progress is answered although its member makes a handshake.
func TestAProbeLeavesRequestsAlone(t *testing.T) {
	noLeaks(t)
	a := start(t, 1, calm, "", nil)
	asked, answer := make(chan struct{}), make(chan struct{})
	b := start(t, 2, calm, "", func(_ *Options, h *testHandler) {
		h.request = func(context.Context, uint64, []byte) ([]byte, error) {
			close(asked)
			<-answer
			return []byte("yes"), nil
		}
	})
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
	b.SetPeers([]Peer{{ID: 1, Addrs: []string{a.addr}}})
	answered := make(chan error, 1)
	go func() {
		_, err := a.Request(t.Context(), 2, []byte("?"))
		answered <- err
	}()
	get(t, asked, "request")
	if err := a.Probe(t.Context(), 2, []string{b.addr}); err != nil {
		t.Error(err)
	}
	close(answer)
	if err := get(t, answered, "answer"); err != nil {
		t.Error(err)
	}
}
