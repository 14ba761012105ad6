package same

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/bench"
)

// jsonRequest is a request to the gateway. It is a POST unless it has a method.
type jsonRequest struct {
	path, body string
	method     string
	asRoot     bool
	stream     bool     // only the first lines of the answer are compared
	lines      int      // of a stream
	hides      []string // fields that are of one cluster
}

// Keys and values are "a" = YQ==, "b" = Yg==, "c" = Yw==, "root" and "pass" in plain text.
var jsonRequests = []jsonRequest{
	{path: "kv/put", body: `{"key":"YQ==","value":"Yg=="}`},
	{path: "kv/put", body: `{"key":"YQ==","value":"Yw==","prev_kv":true}`},
	{path: "kv/put", body: `{"key":"YQ==","value":"Yw==","prevKv":true}`},
	{path: "kv/put", body: `{"key":"YQ==","ignore_value":true,"lease":"0"}`},
	{path: "kv/put", body: `{"key":"Yg==","ignore_value":true}`},
	{path: "kv/put", body: `{"key":"Yg==","value":"Yg==","lease":"12345"}`},
	{path: "kv/put", body: `{"value":"Yg=="}`},
	{path: "kv/put", body: `{}`},
	{path: "kv/put", body: ``},
	{path: "kv/put", body: `{"key":"Yg==","value":"Yg==","unknown":1}`},
	{path: "kv/put", body: `{"key":"not base64!","value":"Yg=="}`},
	{path: "kv/put", body: `{"key":"YQ","value":"Yg"}`},
	{path: "kv/put", body: `{"key":"-_8=","value":"Yg=="}`},
	{path: "kv/put", body: `{"key":7}`},
	{path: "kv/put", body: `{"key":`},
	{path: "kv/put", body: `[1]`},
	{path: "kv/put", body: `null`},
	{path: "kv/put", body: `{"key":"YQ==","key":"Yg=="}`},
	{path: "kv/put", body: `{"key":"YQ=="} {"key":"YQ=="}`},
	{path: "kv/put", method: http.MethodGet},
	{path: "kv/put", method: http.MethodPut, body: `{"key":"YQ=="}`},
	{path: "kv/put", method: http.MethodDelete},
	{path: "kv/nothing", body: `{}`},
	{path: "nothing", body: `{}`},
	{path: "kv/put/", body: `{"key":"YQ=="}`},
	{path: "kv/range", body: `{"key":"YQ=="}`},
	{path: "kv/range", body: `{"key":"YQ==","range_end":"Yw==","sort_order":"DESCEND","sort_target":"KEY"}`},
	{path: "kv/range", body: `{"key":"YQ==","range_end":"Yw==","sort_order":1,"limit":"1"}`},
	{path: "kv/range", body: `{"key":"YQ==","sort_order":"SIDEWAYS"}`},
	{path: "kv/range", body: `{"key":"YQ==","count_only":true,"serializable":true}`},
	{path: "kv/range", body: `{"key":"YQ==","revision":"2","keys_only":true}`},
	{path: "kv/range", body: `{"key":"YQ==","revision":"1000"}`},
	{path: "kv/range", body: `{"key":"YQ==","limit":"many"}`},
	{path: "kv/range", body: `{}`},
	{path: "kv/txn", body: `{"compare":[{"key":"YQ==","result":"EQUAL","target":"VALUE","value":"Yw=="}],` +
		`"success":[{"request_put":{"key":"Yw==","value":"YQ=="}},{"request_range":{"key":"YQ=="}}],` +
		`"failure":[{"request_delete_range":{"key":"YQ=="}}]}`},
	{path: "kv/txn", body: `{"compare":[{"key":"YQ==","target":"MOD","mod_revision":"1"}],` +
		`"failure":[{"request_delete_range":{"key":"Yw==","prev_kv":true}},` +
		`{"requestTxn":{"success":[{"requestRange":{"key":"YQ=="}}]}}]}`},
	{path: "kv/txn", body: `{"success":[{"request_put":{"key":"YQ=="}},{"request_put":{"key":"YQ=="}}]}`},
	{path: "kv/txn", body: `{"success":[{}]}`},
	{path: "kv/txn", body: `{"success":[{"request_put":{"key":"YQ=="},"request_range":{"key":"YQ=="}}]}`},
	{path: "kv/txn", body: `{}`},
	{path: "kv/deleterange", body: `{"key":"Yw==","prev_kv":true}`},
	{path: "kv/deleterange", body: `{"key":"YQ==","range_end":"AA==","prev_kv":true}`},
	{path: "kv/deleterange", body: `{}`},
	{path: "kv/compaction", body: `{"revision":"3","physical":true}`},
	{path: "kv/compaction", body: `{"revision":"3"}`},
	{path: "kv/compaction", body: `{"revision":"1000"}`},
	{path: "lease/grant", body: `{"ID":"77","TTL":"600"}`},
	{path: "lease/grant", body: `{"ID":"77","TTL":"600"}`},
	{path: "lease/grant", body: `{"ID":"78","TTL":"9000000001"}`},
	{path: "lease/timetolive", body: `{"ID":"77","keys":true}`, hides: []string{"TTL"}},
	{path: "kv/lease/timetolive", body: `{"ID":"77"}`, hides: []string{"TTL"}},
	{path: "lease/timetolive", body: `{"ID":"79"}`},
	{path: "lease/grant", body: `{"ID":"78","TTL":"-1"}`},
	{path: "lease/revoke", body: `{"ID":"78"}`},
	{path: "lease/leases", body: `{}`},
	{path: "kv/lease/leases", body: `{}`},
	{path: "lease/keepalive", body: `{"ID":"77"}`},
	{path: "lease/keepalive", body: `{"ID":"79"}`},
	{path: "lease/revoke", body: `{"ID":"77"}`},
	{path: "kv/lease/revoke", body: `{"ID":"77"}`},
	{path: "cluster/member/list", body: `{}`, hides: []string{"ID", "name", "peerURLs", "clientURLs"}},
	{path: "cluster/member/list", body: `{"linearizable":true}`, hides: []string{"ID", "name", "peerURLs", "clientURLs"}},
	{path: "cluster/member/remove", body: `{"ID":"12345"}`},
	{path: "cluster/member/promote", body: `{"ID":"12345"}`},
	{path: "cluster/member/update", body: `{"ID":"12345","peerURLs":["http://10.0.0.1:1"]}`},
	{path: "maintenance/status", body: `{}`,
		hides: []string{"dbSize", "dbSizeInUse", "dbSizeQuota", "leader", "raftIndex", "raftAppliedIndex", "raftTerm"}},
	{path: "maintenance/alarm", body: `{}`},
	{path: "maintenance/alarm", body: `{"action":"DEACTIVATE","alarm":"NOSPACE"}`},
	{path: "maintenance/hashkv", body: `{}`},
	{path: "maintenance/hash", body: `{}`, hides: []string{"hash"}},
	{path: "maintenance/defragment", body: `{}`},
	{path: "maintenance/downgrade", body: `{"action":"CANCEL"}`},
	{path: "maintenance/downgrade", body: `{"action":"VALIDATE","version":"3.5"}`},
	{path: "maintenance/transfer-leadership", body: `{"targetID":"12345"}`},
	{path: "maintenance/snapshot", body: `{}`, stream: true, hides: []string{"blob", "remaining_bytes"}, lines: 1},
	{path: "watch", body: `{"create_request":{"key":"YQ==","range_end":"AA==","start_revision":"4","prev_kv":true}}`,
		stream: true, lines: 2},
	{path: "watch", body: `{"create_request":{"key":"YQ==","start_revision":"2"}}`, stream: true, lines: 2},
	{path: "watch", body: `{"create_request":`, stream: true, lines: 1},
	{path: "watch", body: `{"create_request":{"key":"?"}}`, stream: true, lines: 1},
	{path: "auth/status", body: `{}`},
	{path: "auth/enable", body: `{}`},
	{path: "auth/user/add", body: `{"name":"root","password":"pass"}`},
	{path: "auth/user/add", body: `{"name":"root","password":"pass"}`},
	{path: "auth/user/add", body: `{}`},
	{path: "auth/user/get", body: `{"name":"root"}`},
	{path: "auth/user/list", body: `{}`},
	{path: "auth/role/add", body: `{"name":"root"}`},
	{path: "auth/role/add", body: `{"name":"reader"}`},
	{path: "auth/role/grant", body: `{"name":"reader","perm":{"key":"YQ==","permType":"READ"}}`},
	{path: "auth/role/grant", body: `{"name":"reader","perm":{"key":"YQ==","permType":"WISH"}}`},
	{path: "auth/role/get", body: `{"role":"reader"}`},
	{path: "auth/role/list", body: `{}`},
	{path: "auth/user/grant", body: `{"user":"root","role":"root"}`},
	{path: "auth/user/grant", body: `{"user":"root","role":"nothing"}`},
	{path: "auth/enable", body: `{}`},
	{path: "auth/authenticate", body: `{"name":"root","password":"wrong"}`},
	{path: "auth/authenticate", body: `{"name":"root","password":"pass"}`, hides: []string{"token"}},
	{path: "kv/range", body: `{"key":"YQ=="}`},
	{path: "kv/range", body: `{"key":"YQ=="}`, asRoot: true},
	{path: "watch", body: `{"create_request":{"key":"YQ=="}}`, stream: true, lines: 1},
	{path: "auth/role/revoke", body: `{"role":"reader","key":"YQ=="}`, asRoot: true},
	{path: "auth/role/delete", body: `{"role":"reader"}`, asRoot: true},
	{path: "auth/user/changepw", body: `{"name":"nothing","password":"x"}`, asRoot: true},
	{path: "auth/user/revoke", body: `{"name":"root","role":"root"}`, asRoot: true},
	{path: "auth/user/delete", body: `{"name":"nothing"}`, asRoot: true},
	{path: "auth/disable", body: `{}`},
	{path: "auth/disable", body: `{}`, asRoot: true},
	{path: "election/leader", body: `{"name":"YQ=="}`},
	{path: "lock/unlock", body: `{"key":"YQ=="}`},
}

// streamTimeout is how long a stream may say nothing: some have no more to say.
const streamTimeout = 3 * time.Second

// TestJSON sends requests to the gateways of etcd and braid, and demands the same codes and bodies.
func TestJSON(t *testing.T) {
	rivals, own := build(t, "../"), build(t, "../../../cmd/braid")
	flags := []string{"--bcrypt-cost", "4"}
	endpoints := [2]string{
		serve(t, rivals, bench.ServerKind{Name: "etcd", Args: []string{"etcd-member"}, Flags: flags}, 1),
		serve(t, own, bench.ServerKind{Name: "raft", Args: []string{"serve"}, Flags: flags}, 1),
	}
	var tokens [2]string
	var differences []string
	for i := range jsonRequests {
		r := &jsonRequests[i]
		var got [2]string
		for side := range got {
			got[side] = r.send(t, endpoints[side], &tokens[side])
		}
		if got[0] != got[1] {
			differences = append(differences, fmt.Sprintf("%s %s %s\n  etcd:  %s\n  braid: %s", r.method, r.path, r.body,
				got[0], got[1]))
		}
	}
	require.Empty(t, differences, "%s", strings.Join(differences, "\n"))
}

// send returns a server's answer: its code, its type, and its lines without what is of one cluster.
func (r *jsonRequest) send(t *testing.T, endpoint string, token *string) string {
	t.Helper()
	timeout := answerTimeout
	if r.stream {
		timeout = streamTimeout
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	method := r.method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+endpoint+"/v3/"+r.path, strings.NewReader(r.body))
	require.NoError(t, err)
	if r.asRoot {
		req.Header.Set("Authorization", *token)
	}
	resp, err := http.DefaultClient.Do(req)
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer"
	}
	require.NoError(t, err)
	defer resp.Body.Close()
	out := fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Content-Type"))
	in := bufio.NewReader(resp.Body)
	for n := 0; !r.stream || n < r.lines; n++ {
		line, err := in.ReadString('\n')
		if line != "" {
			out += " " + r.plain(line, token)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				out += " " + err.Error()
			}
			break
		}
	}
	return out
}

// plain is a line of an answer without what is of one cluster.
func (r *jsonRequest) plain(line string, token *string) string {
	var body any
	if json.Unmarshal([]byte(line), &body) != nil {
		return line
	}
	if m, ok := body.(map[string]any); ok {
		if text, ok := m["token"].(string); ok {
			*token = text
		}
	}
	hide(body, append(r.hides, "cluster_id", "member_id", "raft_term"))
	data, err := json.Marshal(body) // keys in order
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(data), "\u00a0", " ") // texts of package proto have either, by the program's build
}

// hide replaces the values of fields.
func hide(body any, names []string) {
	switch b := body.(type) {
	case []any:
		for _, e := range b {
			hide(e, names)
		}
	case map[string]any:
		for _, name := range names {
			if _, has := b[name]; has {
				b[name] = "…"
			}
		}
		for _, e := range b {
			hide(e, names)
		}
	}
}
