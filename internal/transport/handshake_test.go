package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/braidlog/braid/internal/testsize"
)

func TestHandshakeRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
		expect uint64 // the id that member 1 expects at 2's address
		knows  uint64 // whom member 2 knows
		reason Reason
	}{
		{"cluster", func(o *Options) { o.Cluster = 5 }, 2, 1, ReasonCluster},
		{"member", func(*Options) {}, 3, 1, ReasonMember},
		{"settings", func(o *Options) { o.Settings = telling(testSettings[:1]...) }, 2, 1, ReasonSettings},
		{"unknown", func(*Options) {}, 2, 9, ReasonUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			noLeaks(t)
			a := start(t, 1, calm, "", nil)
			b := start(t, 2, calm, "", func(o *Options, _ *testHandler) { c.change(o) })
			b.SetPeers([]Peer{{ID: c.knows}})
			a.SetPeers([]Peer{{ID: c.expect, Addrs: []string{b.addr}}})
			a.expectRefused(t, c.expect, c.reason, true)
			eventually(t, "the refusing side logs why and whom", func() bool {
				log := b.logs.String()
				return strings.Contains(log, c.reason.String()) && strings.Contains(log, "127.0.0.1:")
			})
			if !strings.Contains(a.logs.String(), c.reason.String()) {
				t.Errorf("the refused side logged:\n%s", a.logs)
			}
			if s := a.Stats().Peers[0]; s.Connected || !strings.Contains(s.LastError, c.reason.String()) {
				t.Errorf("stats are %+v", s)
			}
			// It is tried again and again, but told once.
			refused := b.Stats().Refused
			eventually(t, "more attempts", func() bool { return b.Stats().Refused > refused+3 })
			select {
			case e := <-a.events:
				t.Errorf("told again: %+v", e)
			default:
			}
		})
	}
}

func TestDialerChecksWhoAnswers(t *testing.T) {
	for reason, r := range map[Reason]reply{
		ReasonCluster:  {cluster: 5, self: 2, settings: markOf(testText)},
		ReasonMember:   {cluster: testCluster, self: 5, settings: markOf(testText)},
		ReasonSettings: {cluster: testCluster, self: 2, settings: 5},
	} {
		t.Run(reason.String(), func(t *testing.T) {
			noLeaks(t)
			a := start(t, 1, calm, "", nil)
			a.SetPeers([]Peer{{ID: 2, Addrs: []string{impostor(t, r.encode())}}})
			a.expectRefused(t, 2, reason, false)
		})
	}
	for name, c := range map[string]struct {
		answer reply
		want   Reason
		byPeer bool
	}{
		"a member's word":         {reply{reason: ReasonRemoved, cluster: testCluster, self: 2}, ReasonRemoved, true},
		"word of another cluster": {reply{reason: ReasonRemoved, cluster: 5, self: 2}, ReasonMember, false},
		"word of another member":  {reply{reason: ReasonRemoved, cluster: testCluster, self: 5}, ReasonMember, false},
	} {
		t.Run("removed, by "+name, func(t *testing.T) {
			noLeaks(t)
			a := start(t, 1, calm, "", nil)
			a.SetPeers([]Peer{{ID: 2, Addrs: []string{impostor(t, c.answer.encode())}}})
			a.expectRefused(t, 2, c.want, c.byPeer)
		})
	}
	t.Run("garbage", func(t *testing.T) {
		noLeaks(t)
		a := start(t, 1, calm, "", nil)
		a.SetPeers([]Peer{
			{ID: 2, Addrs: []string{impostor(t, []byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"))}}})
		a.expectRefused(t, 2, ReasonGarbage, false)
	})
	t.Run("silence", func(t *testing.T) {
		noLeaks(t)
		a := start(t, 1, quick, "", nil)
		a.SetPeers([]Peer{{ID: 2, Addrs: []string{impostor(t, nil)}}})
		if err := a.expectDown(t, 2); !isTimeout(err) {
			t.Errorf("got %v, want a deadline", err)
		}
	})
}

func TestPeersThatComeAndGo(t *testing.T) {
	a, b := pair(t, nil)
	b.SetPeers(nil) // 2 removes 1, and reports it
	a.expectRefused(t, 2, ReasonUnknown, true)
	if a.Send(2, 0, nil); b.Send(1, 0, nil) {
		t.Error("sent to a removed peer")
	}
	if n := len(b.Stats().Peers); n != 0 {
		t.Errorf("%d peers are left", n)
	}
	connect(a, b)
	a.expectUp(t, 2)
	b.expectUp(t, 1)
	connect(a, b) // nothing changes
	before := a.Stats().Peers[0].Connects
	if !a.Send(2, 0, [][]byte{[]byte("x")}) {
		t.Fatal("not sent")
	}
	get(t, b.frames, "frame")
	if after := a.Stats().Peers[0].Connects; after != before {
		t.Errorf("%d connections were made by SetPeers with the same peers", after-before)
	}
}

func TestPeerMoves(t *testing.T) {
	a, b := pair(t, nil)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b2 := start(t, 2, calm, "", nil)
	connect(a, b2)
	a.expectUp(t, 2)
}

// TestPeerMovesWithinTheHandshake: a connection that was begun before the peer moved is not used, so that the link is
// at the peer's address.
func TestPeerMovesWithinTheHandshake(t *testing.T) {
	noLeaks(t)
	a, b := start(t, 1, calm, "", nil), start(t, 2, calm, "", nil)
	b.SetPeers([]Peer{{ID: 1}})
	before, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{before.Addr().String()}}})
	dialed, err := before.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer dialed.Close()
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
	there, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	go io.Copy(there, dialed)
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(dialed, there)
		ended <- err
	}()
	a.expectUp(t, 2)
	get(t, ended, "the end of the connection from before")
	a.Send(2, 0, [][]byte{[]byte("x")})
	get(t, b.frames, "frame")
}

// TestEachKindOfErrorIsReportedOnce, although the peer is tried in turn where no one listens and where another
// program does.
func TestEachKindOfErrorIsReportedOnce(t *testing.T) {
	noLeaks(t)
	a, b, c := start(t, 1, calm, "", nil), start(t, 2, calm, "", nil), start(t, 3, calm, "", nil)
	b.SetPeers([]Peer{{ID: 1}})
	nobody := start(t, 4, calm, "", nil)
	if err := nobody.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for addr, says := range map[string]string{nobody.addr: "connection refused", c.addr: "not the member expected"} {
			a.SetPeers([]Peer{{ID: 2, Addrs: []string{addr}}})
			eventually(t, says, func() bool { return strings.Contains(a.Stats().Peers[0].LastError, says) })
		}
	}
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
	downs := 0
	for e := get(t, a.events, "PeerUp"); !e.up; e = get(t, a.events, "PeerUp") {
		downs++
	}
	if downs != 2 {
		t.Errorf("told %d times", downs)
	}
}

func TestUnknownMembersMayTalkIfAllowed(t *testing.T) {
	noLeaks(t)
	a := start(t, 1, calm, "", nil)
	b := start(t, 2, calm, "", func(o *Options, _ *testHandler) {
		o.Admit = func(id uint64) Reason {
			if id == 1 {
				return 0
			}
			return ReasonUnknown
		}
	})
	c := start(t, 3, calm, "", nil)
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
	a.expectUp(t, 2)
	a.Send(2, 4, [][]byte{[]byte("hello")})
	if f := get(t, b.frames, "frame"); f.from != 1 || f.stream != 4 {
		t.Errorf("got %+v", f)
	}
	c.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
	c.expectRefused(t, 2, ReasonUnknown, true)
}

// TestIdentityIsCheckedBeforeLineage: a member that refuses another one for its lineage still learns who that one
// expects it for.
func TestIdentityIsCheckedBeforeLineage(t *testing.T) {
	for want, meets := range map[Reason]error{ReasonIdentity: errors.New("it was another one"), ReasonLineage: nil} {
		t.Run(want.String(), func(t *testing.T) {
			noLeaks(t)
			a := start(t, 1, calm, "", nil)
			b := start(t, 2, calm, "", func(o *Options, _ *testHandler) {
				o.Admit = func(uint64) Reason { return ReasonLineage }
				o.Verify = func(uint64, Who, Who) error { return meets }
			})
			a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
			a.expectRefused(t, 2, want, true)
		})
	}
}

// TestStrangers lets strangers do what they like; the cluster continues.
func TestStrangers(t *testing.T) {
	testsize.Long(t)
	hi := greeting(forFrames, 9)
	bad := func(change func(b []byte)) []byte {
		b := bytes.Clone(hi)
		change(b)
		return b
	}
	frame := func(h header) []byte { return append(bytes.Clone(hi), appendHeader(nil, h)...) }
	for _, c := range []struct {
		name, log string
		say       []byte
		hang      bool // stays connected and sends nothing more
	}{
		{"nothing", "0 bytes", nil, true},
		{"closes at once", "0 bytes", nil, false},
		{"http", "looks like HTTP", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), true},
		{"grpc", "HTTP/2 or gRPC", []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), true},
		{"tls", "port is plain", append([]byte{0x16, 3, 1, 2, 0}, make([]byte, 512)...), true},
		{"garbage", "looks like", bytes.Repeat([]byte{0xff}, 4096), true},
		{"half a handshake", "half a handshake", hi[:20], true},
		{"half a handshake, closed", "half a handshake", hi[:20], false},
		{"wrong version", ReasonVersion.String(), bad(func(b []byte) { b[4] = 99 }), true},
		{"flipped bit", "wrong checksum", bad(func(b []byte) { b[30] ^= 1 }), true},
		{"half a frame", "nothing came for",
			append(frame(header{kind: kindFrame, stream: 9, length: 100}), "half"...), true},
		{"half a frame, closed", "unexpected EOF",
			append(frame(header{kind: kindFrame, stream: 9, length: 100}), "half"...), false},
		{"oversized frame", "the limit is", frame(header{kind: kindFrame, stream: 9, length: 1 << 31}), true},
		{"frame of another stream", "on the connection of stream 9", frame(header{kind: kindFrame, stream: 8}), true},
		{"frame of no kind", "unknown kind", frame(header{kind: 77, stream: 9}), true},
		{"garbage after the handshake", "begins with", append(bytes.Clone(hi), bytes.Repeat([]byte("garbage!"), 9)...), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := pairOf(t, quick, nil)
			conn := stranger(t, a.addr, nil)
			if _, err := conn.Write(c.say); err != nil {
				t.Fatal(err)
			}
			if c.hang {
				expectClosed(t, conn)
			} else {
				conn.(interface{ CloseWrite() error }).CloseWrite()
			}
			eventually(t, "a log line with "+c.log, func() bool {
				return strings.Contains(a.logs.String(), c.log) && strings.Contains(a.logs.String(), conn.LocalAddr().String())
			})
			eventually(t, "a frame of the peer", func() bool {
				b.Send(1, 3, [][]byte{[]byte("undisturbed")})
				select {
				case f := <-a.frames:
					return string(f.frame) == "undisturbed"
				default:
					return false
				}
			})
		})
	}
}

// TestSlowStranger sends one byte at a time, always within any single read's deadline.
func TestSlowStranger(t *testing.T) {
	testsize.Long(t)
	a, _ := pairOf(t, quick, nil)
	conn := stranger(t, a.addr, nil)
	began := time.Now()
	for _, b := range greeting(forFrames, 9) {
		if _, err := conn.Write([]byte{b}); err != nil {
			break
		}
		<-time.After(quick.handshake / 20)
	}
	expectClosed(t, conn)
	if d := time.Since(began); d > 10*quick.handshake {
		t.Errorf("held on for %v", d)
	}
}

// TestFloodOfStrangers opens more connections than may be in the handshake.
func TestFloodOfStrangers(t *testing.T) {
	noLeaks(t)
	slow := quick
	slow.handshake = testTimeout
	a := start(t, 1, slow, "", nil)
	for range maxHandshakes + 20 {
		stranger(t, a.addr, nil)
	}
	eventually(t, "the oldest are closed", func() bool { return a.Stats().Refused >= 20 })
	b := start(t, 2, slow, "", nil)
	connect(a, b)
	a.expectUp(t, 2)
	b.expectUp(t, 1)
	if n := strings.Count(a.logs.String(), "incoming connection refused"); n > 15 {
		t.Errorf("%d lines logged", n)
	}
}

// TestSecondConnectionReplacesFirst: frames of two connections are never handled at once.
func TestSecondConnectionReplacesFirst(t *testing.T) {
	noLeaks(t)
	a := start(t, 1, calm, "", nil)
	a.SetPeers([]Peer{{ID: 2}})
	open := func() io.ReadWriteCloser {
		conn := stranger(t, a.addr, nil)
		if _, err := conn.Write(greeting(forFrames, 9)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, replySize)
		if _, err := io.ReadFull(conn, b); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first := open()
	second := open()
	b, err := io.ReadAll(first)
	if len(b) != replySize {
		t.Fatalf("the first got % x, %v", b, err)
	}
	if r, ok := decodeReply(b); !ok || r.reason != ReasonReplaced {
		t.Errorf("the first was told %+v", r)
	}
	head := appendHeader(nil, header{kind: kindFrame, stream: 9, length: 2})
	if _, err := second.Write(append(head, "ok"...)); err != nil {
		t.Fatal(err)
	}
	if f := get(t, a.frames, "frame"); string(f.frame) != "ok" {
		t.Errorf("got %q", f.frame)
	}
}

func TestDecodersRefuseGarbage(t *testing.T) {
	h := header{kind: kindAnswer, stream: 77, length: 1234}
	good := appendHeader(nil, h)
	if got, err := parseHeader(good, 1234); err != nil || got != h {
		t.Fatalf("got %+v, %v", got, err)
	}
	for bit := range headerSize * 8 {
		b := bytes.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		if got, err := parseHeader(b, 1<<30); err == nil {
			t.Errorf("bit %d flipped: got %+v", bit, got)
		}
	}
	r := reply{reason: ReasonBusy, cluster: 1, self: 2, settings: 3, who: Who{[16]byte{6}, 7, 8},
		expects: Who{[16]byte{9}, 10, 11}, joins: true}
	if got, ok := decodeReply(r.encode()); !ok || got != r {
		t.Errorf("got %+v", got)
	}
	hi := hello{purpose: forSnapshot, cluster: 1, from: 2, to: 3, settings: 4, stream: 5, who: Who{[16]byte{6}, 7, 8},
		expects: Who{[16]byte{9}, 10, 11}, joins: true}
	enc := hi.encode()
	if got, reason, _ := decodeHello(enc); reason != 0 || got != hi {
		t.Errorf("got %+v, %v", got, reason)
	}
	for bit := range len(enc) * 8 {
		b := bytes.Clone(enc)
		b[bit/8] ^= 1 << (bit % 8)
		if _, reason, detail := decodeHello(b); reason != ReasonGarbage && reason != ReasonVersion || detail == "" {
			t.Errorf("bit %d flipped: %v %s", bit, reason, detail)
		}
	}
	if binary.LittleEndian.Uint32(enc) == binary.LittleEndian.Uint32((&reply{}).encode()) {
		t.Error("both sides begin alike")
	}
	if s := fmt.Sprint(Reason(200)); s != "reason 200" {
		t.Error(s)
	}
}

// greeting is what a dialer sends that agrees to any reply.
func greeting(what purpose, stream uint32) []byte {
	h := hello{purpose: what, cluster: testCluster, from: 2, to: 1, settings: markOf(testText), stream: stream}
	return append(append(h.encode(), testText...), agreed)
}

// TestIdentitiesAreSent: each side learns the identity of the other and who the other expects it to be, by whichever
// side does not agree there is no link, and what is noted is noted before anything is heard.
func TestIdentitiesAreSent(t *testing.T) {
	one, two := Who{Log: [16]byte{1}, Life: 3, Mark: 33}, Who{Log: [16]byte{2}, Life: 5, Mark: 55}
	type told struct {
		id         uint64
		who, takes Who
	}
	for _, refuses := range []uint64{0, 1, 2} {
		t.Run(fmt.Sprintf("%d refuses", refuses), func(t *testing.T) {
			noLeaks(t)
			meets, notes := make(chan told, 1000), make(chan told, 1000)
			with := func(self uint64, who Who, taken Who) func(*Options, *testHandler) {
				return func(o *Options, h *testHandler) {
					o.Who = who
					o.Expects = func(uint64) Who { return taken }
					o.Verify = func(id uint64, w, takes Who) error {
						meets <- told{id, w, takes}
						if self == refuses {
							return fmt.Errorf("it is not %x", id)
						}
						return nil
					}
					o.Linked = func(id uint64, w Who) error { notes <- told{id: id, who: w}; return nil }
				}
			}
			a := start(t, 1, calm, "", with(1, one, Who{Life: 4}))
			b := start(t, 2, calm, "", with(2, two, Who{Life: 2}))
			b.SetPeers([]Peer{{ID: 1}})
			a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
			if refuses > 0 {
				a.expectRefused(t, 2, ReasonIdentity, refuses == 2)
				if refuses == 2 {
					eventually(t, "the refused side is told whom it is taken for", func() bool {
						return get(t, meets, "meeting") == told{2, two, Who{Life: 2}}
					})
				}
				if len(notes) > 1 { // the listening side's comes after the dialer's
					t.Errorf("%d links are noted", len(notes))
				}
				return
			}
			a.expectUp(t, 2)
			if got := get(t, meets, "meeting"); got != (told{1, one, Who{Life: 4}}) {
				t.Errorf("the listening side is told %+v", got)
			}
			if got := get(t, meets, "meeting"); got != (told{2, two, Who{Life: 2}}) {
				t.Errorf("the dialer is told %+v", got)
			}
			if got := get(t, notes, "note"); got != (told{id: 2, who: two}) {
				t.Errorf("the dialer notes %+v", got)
			}
			if got := get(t, notes, "note"); got != (told{id: 1, who: one}) {
				t.Errorf("the listening side notes %+v", got)
			}
		})
	}
}

// TestExpectationsOfAnotherLogDoNotCount: who it expects this member to be is compared only if the two lineages do not
// differ, in both directions.
func TestExpectationsOfAnotherLogDoNotCount(t *testing.T) {
	for _, refuses := range []uint64{1, 2, 3} { // the dialer, the listening side, both
		for _, c := range []struct {
			here, there uint64 // lineages
			want        Reason
		}{{5, 6, ReasonLineage}, {5, 5, ReasonIdentity}, {5, 0, ReasonIdentity}, {0, 6, ReasonIdentity}} {
			t.Run(fmt.Sprintf("%d refuses, lineages %d and %d", refuses, c.here, c.there), func(t *testing.T) {
				noLeaks(t)
				unmet := make(chan uint64, 1000)
				with := func(self, lineage uint64) func(*Options, *testHandler) {
					return func(o *Options, _ *testHandler) {
						o.Lineage = func() uint64 { return lineage }
						o.CheckOrigin = func(_, told, _ uint64) (bool, error) {
							if lineage != 0 && told != 0 && lineage != told {
								return false, errors.New("another log")
							}
							return true, nil
						}
						o.Refused = func(uint64, Who, Who) { unmet <- self }
						if refuses&self != 0 {
							o.Verify = func(uint64, Who, Who) error { return errors.New("it was another one") }
						}
					}
				}
				a, b := start(t, 1, calm, "", with(1, c.here)), start(t, 2, calm, "", with(2, c.there))
				b.SetPeers([]Peer{{ID: 1}})
				a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
				a.expectRefused(t, 2, c.want, c.want == ReasonIdentity && refuses != 1)
				if c.want == ReasonIdentity {
					get(t, unmet, "a member that is told")
				} else if len(unmet) > 0 {
					t.Error("a member is told by one of another log who it is")
				}
			})
		}
	}
}

// TestRemovalsOfAnotherLogDoNotCount: a member's removals count only if the two lineages do not differ.
func TestRemovalsOfAnotherLogDoNotCount(t *testing.T) {
	for _, c := range []struct {
		here, there uint64 // lineages
		want        Reason
	}{{5, 6, ReasonLineage}, {5, 5, ReasonRemoved}, {5, 0, ReasonRemoved}, {0, 6, ReasonRemoved}} {
		t.Run(fmt.Sprintf("lineages %d and %d", c.here, c.there), func(t *testing.T) {
			noLeaks(t)
			told := make(chan origin, 1000)
			a := start(t, 1, calm, "", origin{c.here, 7}.options(told))
			b := start(t, 2, calm, "", func(o *Options, h *testHandler) {
				origin{c.there, 7}.options(told)(o, h)
				o.Admit = func(uint64) Reason { return ReasonRemoved }
			})
			a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}})
			a.expectRefused(t, 2, c.want, c.want == ReasonRemoved)
		})
	}
}

// TestFewDescriptorsAllowFewHandshakes: strangers must not use up the descriptors of a process that may have few.
func TestFewDescriptorsAllowFewHandshakes(t *testing.T) {
	for descriptors, want := range map[int]int{16: 8, 300: 18, 1024: 64, 1 << 20: maxHandshakes} {
		if n := handshakes(descriptors); n != want {
			t.Errorf("%d descriptors: %d handshakes, want %d", descriptors, n, want)
		}
	}
}
