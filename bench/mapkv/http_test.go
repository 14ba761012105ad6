package mapkv

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
)

// log applies proposals at once, or fails with err.
type log struct {
	state    *Map
	err      error
	barriers int
	touched  []uint64 // by the last command
	position braid.Position
	bodies   map[braid.BodyRef][]byte
	bodyErr  error // of Body
	fetched  int   // bodies until bodyErr
}

func (l *log) ProposeWith(_ context.Context, command, body []byte, o braid.ProposeOptions) (any, error) {
	if l.touched = o.Keys; l.err != nil {
		return nil, l.err
	}
	l.position++
	batch := []braid.Command{{Position: l.position, Data: command}}
	if len(body) > 0 {
		ref := bodyRef(uint64(l.position), len(body))
		if l.bodies == nil {
			l.bodies = map[braid.BodyRef][]byte{}
		}
		batch[0].Body, l.bodies[ref] = &ref, body
	}
	err := l.state.Apply(batch)
	return batch[0].Result, err
}

func (l *log) Body(_ context.Context, ref braid.BodyRef) ([]byte, error) {
	if l.bodyErr != nil && l.fetched <= 0 {
		return nil, l.bodyErr
	}
	l.fetched--
	return l.bodies[ref], nil
}

func bodyRef(index uint64, size int) braid.BodyRef {
	return braid.BodyRef{Instance: 1, Index: protocol.Index(index), Term: 3, K: 2, Size: uint32(size), Digest: 1 << 31}
}

func (l *log) ReadBarrier(context.Context) error {
	l.barriers++
	return l.err
}

func (l *log) Status() braid.Status { return braid.Status{Self: 1} }

func (l *log) Done() <-chan struct{} { return nil }

func (l *log) Err() error { return nil }

// ask makes a request and returns the status code and the body.
func ask(t *testing.T, method, url, body string) (code int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(data)
}

func TestHTTP(t *testing.T) {
	l := &log{state: NewMap()}
	s := httptest.NewServer(Handler(l, l.state, time.Minute, 0))
	defer s.Close()
	for _, c := range []struct {
		method, path, body string
		code               int
		answer             string
	}{
		{"GET", "/kv/a", "", 404, "no such key\n"},
		{"PUT", "/kv/a", "one", 204, ""},
		{"GET", "/kv/a", "", 200, "one"},
		{"PUT", "/kv/dir/with%2Fslash%20and%20more", "two", 204, ""},
		{"GET", "/kv/dir/with%2Fslash%20and%20more", "", 200, "two"},
		{"PUT", "/kv/empty", "", 204, ""},
		{"GET", "/kv/empty", "", 200, ""},
		{"DELETE", "/kv/a", "", 204, ""},
		{"GET", "/kv/a?stale", "", 404, "no such key\n"},
		{"GET", "/kv/", "", 400, "no key: /kv/KEY\n"},
		{"PUT", "/kv/" + strings.Repeat("k", maxKey+1), "", 413, "key of 4097 bytes: at most 4096\n"},
		{"PATCH", "/kv/a", "", 405, "Method Not Allowed\n"},
		{"POST", "/append", "in the log", 200, "5\n"},
		{"POST", "/kv/empty", "first,", 204, ""},
		{"POST", "/kv/empty", "second", 204, ""},
		{"GET", "/kv/empty", "", 200, "first,second"},
		{"POST", "/kv/", "x", 400, "no key: /kv/KEY\n"},
		{"GET", "/kv/empty?ordered", "", 200, "first,second"},
		{"PUT", "/kv/none", "", 204, ""},
		{"GET", "/kv/none?ordered", "", 200, ""},
		{"GET", "/kv/a?ordered", "", 404, "no such key\n"},
		{"GET", "/nothing", "", 404, "404 page not found\n"},
	} {
		code, answer := ask(t, c.method, s.URL+c.path, c.body)
		require.Equal(t, c.code, code, "%s %s", c.method, c.path)
		require.Equal(t, c.answer, answer, "%s %s", c.method, c.path)
	}
	require.Equal(t, 5, l.barriers, "of six reads of keys one may be stale")
}

func TestTooLargeValues(t *testing.T) {
	l := &log{state: NewMap()}
	s := httptest.NewServer(Handler(l, l.state, 0, 0))
	defer s.Close()
	large := strings.Repeat("x", MaxValue)
	code, _ := ask(t, "PUT", s.URL+"/kv/a", large)
	require.Equal(t, 204, code)
	code, answer := ask(t, "GET", s.URL+"/kv/a", "")
	require.Equal(t, 200, code)
	require.Equal(t, len(large), len(answer))
	code, answer = ask(t, "PUT", s.URL+"/kv/a", large+"x")
	require.Equal(t, 413, code)
	require.Contains(t, answer, "value of more than 16777216 bytes")
	require.Equal(t, braid.Position(1), l.position)
}

// The status code says whether a request may be repeated.
func TestErrors(t *testing.T) {
	l := &log{state: NewMap()}
	s := httptest.NewServer(Handler(l, l.state, 0, 0))
	defer s.Close()
	for err, want := range map[error]int{
		braid.ErrNoLeader: 503, braid.ErrOverloaded: 503, braid.ErrTooLarge: 413, braid.ErrStopped: 504,
		braid.ErrResultUnknown: 504,
		ErrValueFull:           413, &braid.BodyError{}: 503,
		fmt.Errorf("%w: %w", braid.ErrMaybeCommitted, context.DeadlineExceeded): 504, io.ErrUnexpectedEOF: 500,
		errCommand: 500,
	} {
		l.err = err
		code, answer := ask(t, "PUT", s.URL+"/kv/a", "x")
		require.Equal(t, want, code, "%v", err)
		require.Contains(t, answer, err.Error())
	}
	l.err = braid.ErrReadTimeout
	code, _ := ask(t, "GET", s.URL+"/kv/a", "")
	require.Equal(t, 503, code)
	code, _ = ask(t, "GET", s.URL+"/kv/a?stale", "")
	require.Equal(t, 404, code, "a stale read needs no cluster")
}

// Large values are bodies, and a value may have both kinds of chunks.
func TestLargeValuesAreBodies(t *testing.T) {
	const threshold = 10_000 // more than a server buffers
	l := &log{state: NewMap()}
	s := httptest.NewServer(Handler(l, l.state, 0, threshold))
	defer s.Close()
	small, large := strings.Repeat("s", threshold-1), strings.Repeat("l", threshold)
	for _, c := range []struct {
		method, value string
		bodies        int
	}{{"PUT", small, 0}, {"PUT", large, 1}, {"POST", small, 1}, {"POST", large, 2}} {
		code, _ := ask(t, c.method, s.URL+"/kv/a", c.value)
		require.Equal(t, 204, code)
		require.Len(t, l.bodies, c.bodies)
	}
	code, answer := ask(t, "GET", s.URL+"/kv/a", "")
	require.Equal(t, 200, code)
	require.Equal(t, large+small+large, answer)
	v, _ := l.state.Get("a")
	require.Len(t, v.Chunks, 3)
	require.Equal(t, bodyRef(2, threshold), v.Chunks[0].Body)
	code, _ = ask(t, "POST", s.URL+"/append", large)
	require.Equal(t, 200, code)
	require.Len(t, l.bodies, 3)

	// An error of the first chunk has a status; one of a later chunk must not look like an end.
	l.bodyErr, l.fetched = &braid.BodyError{Found: 1, Need: 2}, 0
	code, answer = ask(t, "GET", s.URL+"/kv/a", "")
	require.Equal(t, 503, code)
	require.Contains(t, answer, l.bodyErr.Error())
	l.fetched = 1
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/kv/a", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	_, err = io.ReadAll(resp.Body)
	require.Error(t, err)
}
