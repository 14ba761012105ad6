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
)

// log applies what is proposed at once, or fails with err.
type log struct {
	state    *Map
	err      error
	barriers int
	position braid.Position
}

func (l *log) Propose(ctx context.Context, command []byte) (any, error) {
	if l.err != nil {
		return nil, l.err
	}
	l.position++
	batch := []braid.Command{{Position: l.position, Data: command}}
	err := l.state.Apply(batch)
	return batch[0].Result, err
}

func (l *log) ReadBarrier(context.Context) error {
	l.barriers++
	return l.err
}

func (l *log) Status() braid.Status { return braid.Status{Self: 1} }

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
	s := httptest.NewServer(Handler(l, l.state, time.Minute))
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
		{"POST", "/kv/a", "", 405, "Method Not Allowed\n"},
		{"POST", "/append", "in the log", 200, "5\n"},
		{"GET", "/nothing", "", 404, "404 page not found\n"},
	} {
		code, answer := ask(t, c.method, s.URL+c.path, c.body)
		require.Equal(t, c.code, code, "%s %s", c.method, c.path)
		require.Equal(t, c.answer, answer, "%s %s", c.method, c.path)
	}
	require.Equal(t, 4, l.barriers, "of five reads of keys one may be stale")
}

func TestTooLargeValues(t *testing.T) {
	l := &log{state: NewMap()}
	s := httptest.NewServer(Handler(l, l.state, 0))
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
	s := httptest.NewServer(Handler(l, l.state, 0))
	defer s.Close()
	for err, want := range map[error]int{
		braid.ErrNoLeader: 503, braid.ErrOverloaded: 503, braid.ErrTooLarge: 413, braid.ErrStopped: 504, braid.ErrResultUnknown: 504,
		fmt.Errorf("%w: %w", braid.ErrMaybeCommitted, context.DeadlineExceeded): 504, io.ErrUnexpectedEOF: 500, errCommand: 500,
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
