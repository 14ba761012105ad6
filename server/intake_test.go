package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/testsize"
)

// fedConn is a connection whose client has sent everything.
type fedConn struct {
	net.Conn
	r io.Reader
}

func (c *fedConn) Read(p []byte) (int, error) { return c.r.Read(p) }
func (c *fedConn) RemoteAddr() net.Addr       { return nil }

// prefixOf is what gRPC puts before a message of n bytes.
func prefixOf(n int) []byte { return binary.BigEndian.AppendUint32([]byte{0}, uint32(n)) }

// However frames cut and pad messages, and however they are read: what gRPC reads is what came, and the
// calls know the sizes of their messages.
func TestFramesAreRead(t *testing.T) {
	var sent bytes.Buffer
	sent.WriteString(clientPreface)
	f := http2.NewFramer(&sent, nil)
	require.NoError(t, f.WriteSettings())
	message := append(prefixOf(300), make([]byte, 300)...)
	for _, stream := range []uint32{1, 3, 5, 7} {
		require.NoError(t,
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte{0x88}, EndHeaders: true}))
	}
	require.NoError(t, f.WriteData(1, true, message))
	for i := range message[:100] {
		require.NoError(t, f.WriteDataPadded(3, false, message[i:i+1], make([]byte, i)))
	}
	require.NoError(t, f.WriteData(5, true, nil))
	require.NoError(t, f.WriteData(7, false, message[:4]))
	for _, reader := range []func(io.Reader) io.Reader{
		func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader,
	} {
		in := newIntake(1<<20, maxCalls)
		m := in.meter(&fedConn{r: reader(bytes.NewReader(sent.Bytes()))})
		calls := map[uint32]*call{}
		for _, stream := range []uint32{1, 3, 5, 7} { // as if gRPC had read the headers
			m.last = stream
			ctx, err := m.begin(context.Background(), true)
			require.NoError(t, err)
			calls[stream] = ctx.(*call)
		}
		got, err := io.ReadAll(iotest.OneByteReader(m))
		require.NoError(t, err)
		require.Equal(t, sent.Bytes(), got)
		require.EqualValues(t, 7, m.last)
		require.Equal(t, [2]int64{300, 0}, [2]int64{calls[1].size, calls[1].left})
		require.Equal(t, [2]int64{300, 205}, [2]int64{calls[3].size, calls[3].left})
		require.True(t, calls[5].begun, "it sends nothing more")
		require.False(t, calls[7].begun)
		require.Equal(t, 4, calls[7].have)
	}
}

func TestBudget(t *testing.T) {
	r := budget{most: 10, each: 6}
	var a, b, c int64
	require.True(t, r.tryAcquire(&a, 6))
	require.False(t, r.tryAcquire(&a, 1), "a has its share")
	require.True(t, r.tryAcquire(&b, 3))
	got := make(chan string, 3)
	wait := func(name string, from *int64, n int64) {
		r.mu.Lock()
		before := len(r.waiting)
		r.mu.Unlock()
		go func() {
			if r.acquire(context.Background(), from, n) == nil {
				got <- name
			}
		}()
		eventually(t, name, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.waiting) > before })
	}
	wait("a", &a, 2)
	require.False(t, r.isContended(), "a waits for itself")
	require.True(t, r.tryAcquire(&b, 1))
	r.release(&b, 1)
	wait("c", &c, 4)
	require.True(t, r.isContended())
	require.False(t, r.tryAcquire(&b, 1), "others came before")
	r.release(&b, 3)
	require.Equal(t, "c", <-got, "a has its share already")
	r.release(&a, 6)
	require.Equal(t, "a", <-got)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, r.acquire(ended, &b, 6), rpctypes.ErrGRPCRequestTooManyRequests)
	r.release(&a, 2)
	r.release(&c, 4)
	require.Zero(t, r.used+a+b+c)
}

// rawCalls is a client that sends frames as it likes.
type rawCalls struct {
	t      testing.TB
	framer *http2.Framer
	status chan *status.Status // of each call that ended
}

func (f *fixture) rawCalls(t testing.TB) *rawCalls {
	conn, err := net.Dial("tcp", f.addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = conn.Write([]byte(http2.ClientPreface))
	require.NoError(t, err)
	c := &rawCalls{t: t, framer: http2.NewFramer(conn, conn), status: make(chan *status.Status, 100)}
	require.NoError(t, c.framer.WriteSettings())
	reader := http2.NewFramer(nil, conn)
	reader.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	go func() {
		for {
			frame, err := reader.ReadFrame()
			if err != nil {
				return
			}
			if h, ok := frame.(*http2.MetaHeadersFrame); ok && h.StreamEnded() {
				var code int
				var message string
				for _, field := range h.RegularFields() {
					switch field.Name {
					case "grpc-status":
						code, _ = strconv.Atoi(field.Value)
					case "grpc-message":
						message = field.Value
					}
				}
				c.status <- status.New(codes.Code(code), message)
			}
		}
	}()
	return c
}

// begin begins a put of a message of some size, and sends the first bytes of it.
func (c *rawCalls) begin(stream uint32, size, first int) {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", pb.KV_Put_FullMethodName}, {":authority", "a"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		require.NoError(c.t, enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}))
	}
	require.NoError(c.t,
		c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true}))
	require.NoError(c.t, c.framer.WriteData(stream, false, append(prefixOf(size), make([]byte, first)...)))
}

func used(r *budget) (bytes int64, waiting int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used, len(r.waiting)
}

// Requests that do not end use no more than their memory, and not that of others. They end in time.
func TestUnfinishedRequests(t *testing.T) {
	testsize.Long(t)
	f := start(t)
	ctx := testContext(t)
	c := f.rawCalls(t)
	const calls = 60
	for i := range calls {
		c.begin(uint32(2*i+1), f.cfg.MaxRequestBytes, 1000)
	}
	eventually(t, "all to wait or to be admitted", func() bool {
		bytes, waiting := used(&f.intake.large)
		return int(bytes)/f.cfg.MaxRequestBytes/decoding+waiting == calls && waiting > calls/2
	})
	bytes, _ := used(&f.intake.large)
	require.LessOrEqual(t, bytes, f.intake.large.each, "the share of a connection")
	_, err := f.client.Put(ctx, "k", strings.Repeat("x", 1<<19))
	require.NoError(t, err, "others are served")
	ended := 0
	eventually(t, "all to end", func() bool {
		f.intake.sweep() // time passes
		for len(c.status) > 0 {
			require.Equal(t, codes.DeadlineExceeded, (<-c.status).Code())
			ended++
		}
		return ended == calls
	})
	eventually(t, "the room to be free", func() bool {
		bytes, waiting := used(&f.intake.large)
		return bytes == 0 && waiting == 0
	})
	require.Zero(t, f.intake.calls.Load())
}

// While auth is on, a large request without a user is refused before it is received.
func TestLargeRequestsNeedAUser(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	for _, err := range []error{
		second(f.client.UserAdd(ctx, "root", "pw")), second(f.client.UserGrantRole(ctx, "root", "root")),
		second(f.client.AuthEnable(ctx)),
	} {
		require.NoError(t, err)
	}
	c := f.rawCalls(t)
	c.begin(1, largeRequest+1, 10)
	requireStatus(t, rpctypes.ErrGRPCUserEmpty, (<-c.status).Err())
	root := f.dial(t, clientv3.Config{Username: "root", Password: "pw"})
	_, err := root.Put(ctx, "k", strings.Repeat("x", largeRequest+1))
	require.NoError(t, err)
	body := `{"key": "a", "value": "` + strings.Repeat("A", 2*largeRequest) + `"}`
	resp, err := http.Post("http://"+f.addr+"/v3/kv/put", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Contains(t, string(text), "user name is empty")
}

// A call that gRPC never starts, because its time was over at once, is removed, also where its connection has been
// closed. One that gRPC starts later does not begin.
func TestLostCalls(t *testing.T) {
	in := newIntake(1<<20, maxCalls)
	local, _ := net.Pipe()
	m := in.meter(local)
	ctx, cancel := context.WithCancel(context.Background())
	var calls []*call
	for m.last = 1; m.last < 6; m.last += 2 {
		c, err := m.begin(ctx, true)
		require.NoError(t, err)
		calls = append(calls, c.(*call))
	}
	require.NoError(t, calls[0].start())
	cancel()
	require.NoError(t, m.Close())
	require.Len(t, in.conns, 1)
	for range receiveGrace/sweepEvery + 2 {
		in.sweep()
	}
	require.EqualValues(t, 1, in.calls.Load(), "that of a handler")
	require.Error(t, calls[1].start())
	calls[1].end()
	calls[0].end()
	require.Zero(t, in.calls.Load())
	require.Empty(t, in.conns)
}

// A call that has ended uses no memory: neither by what its client still sends in a frame that was begun before, nor
// where its handler continues for a moment.
func TestEndedCallsUseNoMemory(t *testing.T) {
	var sent bytes.Buffer
	sent.WriteString(clientPreface)
	f := http2.NewFramer(&sent, nil)
	require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}, EndHeaders: true}))
	begins := sent.Len() + frameHeader
	require.NoError(t, f.WriteData(1, false, append(prefixOf(1<<19), make([]byte, 1000)...)))
	in := newIntake(1<<20, maxCalls)
	m := in.meter(&fedConn{r: &sent})
	m.last = 1
	ctx, err := m.begin(context.Background(), false)
	require.NoError(t, err)
	_, err = io.ReadFull(m, make([]byte, begins))
	require.NoError(t, err)
	ctx.(*call).end()
	_, err = io.ReadAll(m)
	require.NoError(t, err)
	require.Zero(t, in.small.used)

	m.last = 3
	ctx, err = m.begin(context.Background(), true)
	require.NoError(t, err)
	c := ctx.(*call)
	require.NoError(t, c.start())
	c.feed(prefixOf(1000))
	c.end()
	require.NoError(t, c.admit(c, nil))
	require.Zero(t, in.small.used)
}

// The time that a body waits for memory does not count for its client.
func TestBodiesThatWaitForMemory(t *testing.T) {
	s := &Server{endpoints: endpoints{intake: newIntake(1<<20, maxCalls)}, timeout: time.Minute}
	var others int64
	require.True(t, s.intake.small.tryAcquire(&others, s.intake.small.each))
	var more int64
	require.True(t, s.intake.small.tryAcquire(&more, s.intake.small.most-others))
	r := httptest.NewRequest(http.MethodPost, "/v3/kv/put", strings.NewReader("{}"))
	done := s.meterBody(httptest.NewRecorder(), r)
	body := r.Body.(*jsonBody)
	began := body.began
	read := make(chan error, 1)
	go func() { read <- second(body.Read(make([]byte, 10))) }()
	eventually(t, "it to wait", func() bool { _, waiting := used(&s.intake.small); return waiting == 1 })
	s.intake.small.release(&more, more)
	require.NoError(t, <-read)
	require.Greater(t, body.began, began)
	done()
	require.Equal(t, others, s.intake.small.used)
}

// A stream of JSON uses memory for the message in progress, and none between messages, however many there are.
func TestStreamsOfJSON(t *testing.T) {
	s := &Server{endpoints: endpoints{intake: newIntake(1<<20, maxCalls)}, timeout: time.Minute}
	in, out := net.Pipe()
	r := httptest.NewRequest(http.MethodPost, "/v3/watch", in)
	done := s.meterBody(httptest.NewRecorder(), r)
	body := r.Body.(*jsonBody)
	pass := func(text string) {
		t.Helper()
		go out.Write([]byte(text))
		_, err := io.ReadFull(body, make([]byte, len(text)))
		require.NoError(t, err)
	}
	for range 10 {
		pass(`{"a": {"b": "}\"}"}} ` + "\n")
		require.Zero(t, body.read)
		pass(`{"a": "` + strings.Repeat("x", 1<<19))
		require.Positive(t, s.intake.small.used)
		pass(`"}`)
		require.Zero(t, s.intake.small.used)
	}
	pass(`{} {"a`)
	require.EqualValues(t, 3, body.read)
	text := strings.Repeat("x", 2*largeRequest)
	go out.Write([]byte(text))
	_, err := io.ReadFull(body, make([]byte, len(text)))
	require.ErrorIs(t, err, errStreamMessage)
	require.Zero(t, s.intake.large.used)
	done()
	require.Zero(t, s.intake.small.used)
	out.Close()
}

// A stream is one by each path that serves it, else its request would have to arrive within seconds.
func TestPathsOfJSONStreams(t *testing.T) {
	s := &Server{endpoints: endpoints{intake: newIntake(1<<20, maxCalls)}}
	for path, stream := range map[string]bool{
		"/v3/watch": true, "/v3beta/watch": true, "/v3/lease/keepalive": true, "/v3beta/lease/keepalive": true,
		"/v3/kv/put": false, "/v3beta/kv/put": false,
	} {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}"))
		done := s.meterBody(httptest.NewRecorder(), r)
		require.Equal(t, stream, r.Body.(*jsonBody).stream, path)
		done()
	}
}

// A message of a stream is small, and a unary call has one message.
func TestMessagesOfAStream(t *testing.T) {
	f := start(t)
	w := f.rawWatch(t, testContext(t))
	w.send(&pb.WatchRequest{
		RequestUnion: &pb.WatchRequest_CreateRequest{
			CreateRequest: &pb.WatchCreateRequest{Key: make([]byte, largeRequest+1)}}})
	_, err := w.stream.Recv()
	require.Contains(t, []codes.Code{codes.ResourceExhausted, codes.DeadlineExceeded}, status.Code(err))
	c := f.rawCalls(t)
	c.begin(1, 10, 10+prefixBytes)
	select {
	case got := <-c.status:
		require.NotEqual(t, codes.OK, got.Code())
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for more")
	}
}

// If the beginning of a request came with its headers, the call does not wait for it.
func TestSizeIsForeseen(t *testing.T) {
	var sent bytes.Buffer
	f := http2.NewFramer(&sent, nil)
	require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}, EndHeaders: true}))
	headers := sent.Len()
	require.NoError(t, f.WriteData(1, true, append(prefixOf(2), "ab"...)))
	m := newIntake(1<<20, maxCalls).meter(&fedConn{r: bytes.NewReader(sent.Bytes())})
	m.skip = 0
	_, err := io.ReadFull(m, make([]byte, headers))
	require.NoError(t, err)
	ctx, err := m.begin(context.Background(), true)
	require.NoError(t, err)
	c := ctx.(*call)
	require.True(t, c.begun)
	require.EqualValues(t, 2, c.size)
	_, err = io.ReadAll(m)
	require.NoError(t, err)
	require.NoError(t, c.Err(), "it is one message")
	require.Zero(t, c.left)
}

// Only a request that has arrived whole is not tracked. A frame that continues headers does not decide whether they
// are all that comes.
func TestWhatIsWhole(t *testing.T) {
	headers := func(f *http2.Framer, end bool) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}, EndStream: end,
			EndHeaders: true})
	}
	goesOn := func(f *http2.Framer, end bool, flags http2.Flags) error {
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88},
			EndStream: end}); err != nil {
			return err
		}
		return f.WriteRawFrame(http2.FrameContinuation, http2.FlagContinuationEndHeaders|flags, 1, []byte{0x88})
	}
	small := append(prefixOf(2), "ab"...)
	for name, c := range map[string]struct {
		frames func(f *http2.Framer) error
		data   []byte
		end    bool
		whole  bool
	}{
		"a small message": {frames: func(f *http2.Framer) error { return headers(f, false) }, data: small,
			end: true, whole: true},
		"more may come": {frames: func(f *http2.Framer) error { return headers(f, false) }, data: small},
		"not all of it": {frames: func(f *http2.Framer) error { return headers(f, false) }, data: small[:6],
			end: true},
		"a large message": {frames: func(f *http2.Framer) error { return headers(f, false) },
			data: append(prefixOf(freeMessage+1), make([]byte, freeMessage+1)...), end: true},
		"nothing":                        {frames: func(f *http2.Framer) error { return headers(f, true) }, whole: true},
		"nothing after headers in two":   {frames: func(f *http2.Framer) error { return goesOn(f, true, 0) }, whole: true},
		"something after headers in two": {frames: func(f *http2.Framer) error { return goesOn(f, false, 0) }},
		"the end where it is not said":   {frames: func(f *http2.Framer) error { return goesOn(f, false, flagEnd) }},
		"a message after headers in two": {frames: func(f *http2.Framer) error { return goesOn(f, false, 0) }, data: small,
			end: true, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			var sent bytes.Buffer
			f := http2.NewFramer(&sent, nil)
			require.NoError(t, c.frames(f))
			n := sent.Len()
			if c.data != nil {
				require.NoError(t, f.WriteData(1, c.end, c.data))
			}
			m := newIntake(1<<20, maxCalls).meter(&fedConn{r: bytes.NewReader(sent.Bytes())})
			m.skip = 0
			_, err := io.ReadFull(m, make([]byte, n))
			require.NoError(t, err)
			require.Equal(t, c.whole, m.whole())
		})
	}
}
