package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeCluster records the operations.
type fakeCluster struct {
	mu    sync.Mutex
	state State
	done  []string
	err   error // of the next operations
}

func (c *fakeCluster) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *fakeCluster) Learn(protocol string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Protocol = protocol
}

func (c *fakeCluster) did(format string, args ...any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, fmt.Sprintf(format, args...))
	return c.err
}

func (c *fakeCluster) operations() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := strings.Join(c.done, "; ")
	c.done = nil
	return done
}

func (c *fakeCluster) Operate(_ context.Context, member string, a Action) error {
	if a == Pause {
		c.serves(member, false)
	}
	return c.did("%s %s", a, member)
}
func (c *fakeCluster) Switch(protocol, token string) error {
	return c.did("switch %s as %q", protocol, token)
}
func (c *fakeCluster) StartLoad(l LoadSpec, token string) error {
	return c.did("load %+v as %q", l, token)
}
func (c *fakeCluster) StopLoad() error { return c.did("no load") }

func (c *fakeCluster) serves(member string, yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.state.Members {
		if c.state.Members[i].Name == member {
			c.state.Members[i].Serves = yes
		}
	}
}

// fakeMember is a member's own server.
type fakeMember struct {
	name string
	mu   sync.Mutex
	// unready: it answers, but has no leader.
	unready bool
	// auth: it answers users only.
	auth bool
	// hangs: requests get no answer, until it is closed.
	hangs chan struct{}
	stuck chan struct{} // has a token for each request that hangs
}

func (m *fakeMember) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	hangs, unready, auth := m.hangs, m.unready, m.auth
	m.mu.Unlock()
	if hangs != nil {
		select {
		case m.stuck <- struct{}{}:
		default:
		}
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
		return
	}
	switch {
	case r.URL.Path == "/readyz" && unready:
		http.Error(w, "no leader", http.StatusServiceUnavailable)
	case r.URL.Path == statusPath && auth && r.Header.Get("Authorization") != "root's":
		http.Error(w, "auth is on", http.StatusUnauthorized)
	case r.URL.Path == statusPath:
		fmt.Fprintf(w, `{"protocol":"of %s"}`, m.name)
	default:
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s%s", m.name, r.Method, r.URL, r.Header.Get("Origin"), body)
	}
}

func (m *fakeMember) change(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

// world is a server with three members.
type world struct {
	t       *testing.T
	cluster *fakeCluster
	members []*fakeMember
	servers []*httptest.Server
	url     string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, cluster: &fakeCluster{state: State{Protocols: []string{"raft", "iss"}, Protocol: "raft"}}}
	for i := range 3 {
		m := &fakeMember{name: fmt.Sprintf("m%d", i+1), stuck: make(chan struct{}, 1)}
		s := httptest.NewServer(m)
		t.Cleanup(s.Close)
		w.members, w.servers = append(w.members, m), append(w.servers, s)
		w.cluster.state.Members = append(w.cluster.state.Members,
			Member{Name: m.name, PID: i + 1, State: "running", ClientURL: s.URL, Serves: true})
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page ", r.URL) })
	s := httptest.NewServer(New(w.cluster, Page{"/dash/", page}))
	t.Cleanup(s.Close)
	w.url = s.URL
	return w
}

// ask makes a request with headers in pairs.
func (w *world) ask(method, path, body string, headers ...string) (status int, answer string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	require.NoError(w.t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			q.Host = headers[i+1]
		}
		q.Header.Set(headers[i], headers[i+1])
	}
	a, err := http.DefaultClient.Do(q)
	require.NoError(w.t, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	require.NoError(w.t, err)
	return a.StatusCode, strings.TrimRight(string(text), "\n")
}

// post makes a change.
func (w *world) post(path, body string, headers ...string) (status int, answer string) {
	w.t.Helper()
	return w.ask(http.MethodPost, path, body, append(headers, controlHeader, "1")...)
}

func TestState(t *testing.T) {
	w := newWorld(t)
	status, text := w.ask(http.MethodGet, "/up", "")
	require.Equal(t, http.StatusOK, status)
	var s State
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	require.Equal(t, "of m1", s.Protocol)
	require.Equal(t, Member{Name: "m2", PID: 2, State: "running", ClientURL: w.servers[1].URL}, s.Members[1])

	// Where no member answers, the protocol is the one that one said last.
	for _, m := range w.members {
		w.cluster.serves(m.name, false)
	}
	_, text = w.ask(http.MethodGet, "/up", "")
	require.Contains(t, text, `"protocol":"of m1"`)
}

func TestControls(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ path, body, want string }{
		{"/up/members/m2/kill", "", "kill m2"},
		{"/up/members/m1/slow", "{}", "slow m1"},
		{"/up/switch", `{"protocol":"iss"}`, `switch iss as ""`},
		{"/up/load", "", `load {Clients:100 ValueBytes:16 Reads:0.5} as ""`},
		{"/up/load", `{"clients":7,"reads":1}`, `load {Clients:7 ValueBytes:16 Reads:1} as ""`},
	} {
		status, text := w.post(c.path, c.body)
		require.Equal(t, http.StatusOK, status, text)
		require.Contains(t, text, `"members":[{"name":"m1"`)
		require.Equal(t, c.want, w.cluster.operations())
	}
	status, _ := w.ask(http.MethodDelete, "/up/load", "", controlHeader, "1")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "no load", w.cluster.operations())

	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/up/members/m2/explode", "", 404, `there is no action \"explode\"`},
		{"/up/members/m2", "", 404, "there is no POST /up/members/m2"},
		{"/up/switch", `{"protocol":"zab"}`, 400, `there is no protocol \"zab\"`},
		{"/up/switch", "iss", 400, "the body is not the expected JSON"},
		{"/up/load", `{"delta":true}`, 400, `unknown field \"delta\"`},
		{"/up/load", strings.Repeat(" ", maxBody+1), 400, "too large"},
	} {
		status, text := w.post(c.path, c.body)
		require.Equal(t, c.status, status, text)
		require.Contains(t, text, c.want)
		require.Empty(t, w.cluster.operations())
	}
	for err, want := range map[error]int{&Error{409, "m1 is dead"}: 409, errors.New("m1 is dead"): 500} {
		w.cluster.err = err
		status, text := w.post("/up/members/m1/pause", "")
		require.Equal(t, want, status)
		require.Equal(t, `{"error":"m1 is dead"}`, text)
	}
}

// All requests that pages of other sites may cause are refused.
func TestRequestsOfOtherSites(t *testing.T) {
	w := newWorld(t)
	own := strings.TrimPrefix(w.url, "http://")
	for _, c := range []struct {
		method, path string
		headers      []string
		status       int
		want         string
	}{
		{"POST", "/up/members/m1/kill", nil, 403, "the header Braid-Control: 1 is missing"},
		{"DELETE", "/up/load", nil, 403, "the header Braid-Control: 1 is missing"},
		{"POST", "/up/load", []string{controlHeader, "1", "Origin", "http://evil.example"}, 403, "http://evil.example"},
		{"POST", "/up/load", []string{controlHeader, "1", "Origin", "null"}, 403, "null"},
		{"POST", "/up/load", []string{controlHeader, "1", "Origin", "https://" + own}, 403, "https://"},
		{"POST", "/up/load", []string{controlHeader, "1", "Origin", w.url}, 200, ""},
		{"POST", "/up/load", []string{controlHeader, "1", "Host", "evil.example"}, 403, "not a name of this machine"},
		{"GET", "/up", []string{"Host", "evil.example:80"}, 403, "not a name of this machine"},
		{"GET", "/up", []string{"Host", "10.0.0.1"}, 403, "not a name of this machine"},
		{"GET", "/up", []string{"Host", "localhost:99"}, 200, ""},
		{"GET", "/up", []string{"Host", "[::1]:99"}, 200, ""},
		{"GET", "/braid/cluster", []string{"Host", "evil.example"}, 403, "not a name of this machine"},
		{"POST", "/v3/kv/put", []string{"Origin", "http://evil.example"}, 403, "http://evil.example"},
		{"POST", "/v3/kv/put", []string{"Origin", w.url}, 200, "m1 POST /v3/kv/put "},
	} {
		status, text := w.ask(c.method, c.path, "", c.headers...)
		require.Equal(t, c.status, status, "%+v: %s", c, text)
		require.Contains(t, text, c.want)
		if done := w.cluster.operations(); status != http.StatusOK {
			require.Empty(t, done, "%+v", c)
		}
	}
}

// While auth is on, only users control the cluster.
func TestControlsAreForUsers(t *testing.T) {
	w := newWorld(t)
	for _, m := range w.members {
		m.change(func() { m.auth = true })
	}
	status, text := w.post("/up/members/m1/kill", "")
	require.Equal(t, http.StatusUnauthorized, status)
	require.Equal(t, `{"error":"auth is on"}`, text)
	require.Empty(t, w.cluster.operations())
	status, text = w.ask(http.MethodGet, "/up", "")
	require.Equal(t, http.StatusUnauthorized, status)
	require.Equal(t, `{"error":"auth is on"}`, text)
	status, text = w.ask(http.MethodGet, "/up", "", "Authorization", "root's")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, `"m1"`)
	status, text = w.post("/up/switch", `{"protocol":"iss"}`, "Authorization", "root's")
	require.Equal(t, http.StatusOK, status, text)
	require.Equal(t, `switch iss as "root's"`, w.cluster.operations())
}

func TestProxy(t *testing.T) {
	w := newWorld(t)
	get := func(path string) string {
		_, text := w.ask(http.MethodGet, path, "")
		return text
	}
	require.Equal(t, "page /dash/x.js?v=1", get("/dash/x.js?v=1"))
	_, text := w.ask(http.MethodPost, "/v3/auth/authenticate", "secret")
	require.Equal(t, "m1 POST /v3/auth/authenticate secret", text)

	// It stays with a member that is ready, and leaves one that is not, does not answer, or is gone.
	w.members[0].change(func() { w.members[0].unready = true })
	require.Eventually(t, func() bool { return get("/version") == "m2 GET /version " }, time.Minute, time.Millisecond)
	w.members[0].change(func() { w.members[0].unready = false })
	for began := time.Now(); time.Since(began) < 2*probeAge; {
		require.Equal(t, "m2 GET /version ", get("/version"))
	}
	w.servers[1].Close()
	others := []string{"m1 GET /version ", "m3 GET /version "}
	require.Contains(t, others, get("/version"), "m2 is gone; others may not have been asked yet")
	hangs := make(chan struct{})
	defer close(hangs)
	w.members[0].change(func() { w.members[0].hangs = hangs })
	require.Eventually(t, func() bool { return get("/readyz") == "m3 GET /readyz " }, time.Minute, time.Millisecond)

	// A member that has no leader is better than none.
	w.members[2].change(func() { w.members[2].unready = true })
	require.Equal(t, "m3 GET /version ", get("/version"))
	w.servers[2].Close()
	w.cluster.serves("m1", false)
	status, text := w.ask(http.MethodGet, "/version", "")
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, text, "the member does not answer")
	w.cluster.serves("m2", false)
	w.cluster.serves("m3", false)
	status, text = w.ask(http.MethodGet, "/version", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, `{"error":"no member answers: all are dead or paused"}`, text)
	require.Equal(t, "page /", get("/"))
}

// A request that a member was about to answer goes to another one when that member is paused.
func TestPauseWithinARequest(t *testing.T) {
	w := newWorld(t)
	_, text := w.ask(http.MethodGet, "/version", "")
	require.Equal(t, "m1 GET /version ", text)
	hangs := make(chan struct{})
	defer close(hangs)
	w.members[0].change(func() { w.members[0].hangs = hangs })
	answered := make(chan string)
	go func() {
		a, err := http.Get(w.url + "/braid/cluster") // within probeAge
		if err != nil {
			answered <- err.Error()
			return
		}
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body)
		answered <- string(text)
	}()
	<-w.members[0].stuck
	status, _ := w.post("/up/members/m1/pause", "")
	require.Equal(t, http.StatusOK, status)
	select {
	case text := <-answered:
		require.NotContains(t, text, "m1")
		require.Contains(t, text, "GET /braid/cluster")
	case <-time.After(time.Minute):
		require.Fail(t, "no answer")
	}
}
