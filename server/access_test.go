package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ask sends a request to a fixture's HTTP server with headers, "Host" among them.
func (f *fixture) ask(t *testing.T, method, path string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(testContext(t), method, "http://"+f.addr+path, strings.NewReader("{}"))
	require.NoError(t, err)
	req.Close = true
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestHostsOfRequests(t *testing.T) {
	f := start(t, func(c *Config) { c.Hosts = []string{"localhost", "db.example.com"} })
	for host, want := range map[string]int{"localhost": 200, "db.example.com:2379": 200, "db.example.org": 421,
		f.addr: 421} {
		resp := f.ask(t, http.MethodPost, "/v3/kv/put", "Host", host)
		require.NotEqual(t, http.StatusNotFound, resp.StatusCode)
		require.Equal(t, want == 421, resp.StatusCode == http.StatusMisdirectedRequest, "%s: %d", host, resp.StatusCode)
	}
	require.Equal(t, http.StatusOK, start(t).ask(t, http.MethodGet, "/health", "Host", "any").StatusCode)
	_, err := f.client.Put(testContext(t), "k", "v") // gRPC names any host, as with etcd
	require.NoError(t, err)
}

func TestOriginsOfRequests(t *testing.T) {
	const header, here, there = "Access-Control-Allow-Origin", "https://a.example.com", "https://b.example.com"
	all, some := start(t), start(t, func(c *Config) { c.Origins = []string{here} })
	require.Equal(t, "*", all.ask(t, http.MethodGet, "/version", "Origin", there).Header.Get(header))
	require.Equal(t, here, some.ask(t, http.MethodGet, "/version", "Origin", here).Header.Get(header))
	require.Empty(t, some.ask(t, http.MethodGet, "/version", "Origin", there).Header.Get(header))
	require.Empty(t, some.ask(t, http.MethodGet, "/version").Header.Get(header))
	before := some.ask(t, http.MethodOptions, "/v3/kv/put", "Origin", here, "Access-Control-Request-Method", "POST")
	require.Equal(t, http.StatusOK, before.StatusCode)
	require.Equal(t, "accept, content-type, authorization", before.Header.Get("Access-Control-Allow-Headers"))
	require.Contains(t, before.Header.Get("Access-Control-Allow-Methods"), "POST")
}

// TestPathOfEtcd33: JSON calls of etcd 3.3 have another prefix.
func TestPathOfEtcd33(t *testing.T) {
	f := start(t)
	_, err := f.client.Put(testContext(t), "k", "v")
	require.NoError(t, err)
	status, body := do(t, http.DefaultClient, http.MethodPost, "http://"+f.addr+"/v3beta/kv/range",
		strings.NewReader(`{"key":"aw=="}`))
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"value":"dg=="`)
}

// TestDebugPaths: profiles are served if that is asked for. While auth is on, strangers get nothing.
func TestDebugPaths(t *testing.T) {
	f := start(t)
	status, body := f.fetch(t, "/debug/vars")
	require.Equal(t, http.StatusOK, status)
	vars := struct{ Memstats struct{ Alloc uint64 } }{}
	require.NoError(t, json.Unmarshal([]byte(body), &vars))
	require.Positive(t, vars.Memstats.Alloc)
	status, _ = f.fetch(t, "/debug/pprof/heap")
	require.Equal(t, http.StatusNotFound, status)

	f = start(t, func(c *Config) { c.Profiling = true })
	for path, want := range map[string]string{"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine",
		"/debug/pprof/cmdline": "server", "/debug/pprof/heap?debug=1": "heap profile"} {
		status, body := f.fetch(t, path)
		require.Equal(t, http.StatusOK, status, path)
		require.Contains(t, body, want, path)
	}
	f.enableAuth(t, testContext(t))
	for _, path := range []string{"/debug/pprof/heap", "/debug/vars"} {
		status, _ := f.fetch(t, path)
		require.Equal(t, http.StatusUnauthorized, status, path)
	}
}
