package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/control"
	"github.com/braidlog/braid/internal/launch"
)

// dashed is a cluster whose dashboard is used.
type dashed struct {
	*cluster
	url   string
	token string // of a user; "": none
}

func upDashed(t *testing.T, args ...string) *dashed {
	t.Helper()
	c := launched(t, nil, dataDir(t), append([]string{"--dash-port=0"}, args...)...)
	ready := c.next(launch.Ready)
	c.endpoints = ready.Endpoints
	return &dashed{cluster: c, url: ready.Dashboard}
}

// request makes a request of the dashboard's page.
func (d *dashed) request(method, path, body string) (status int, answer string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), testTimeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, d.url+path, strings.NewReader(body))
	require.NoError(d.t, err)
	q.Header.Set("Braid-Control", "1")
	if d.token != "" {
		q.Header.Set("Authorization", d.token)
	}
	a, err := http.DefaultClient.Do(q)
	require.NoError(d.t, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	require.NoError(d.t, err)
	return a.StatusCode, string(text)
}

func (d *dashed) post(path, body string) {
	d.t.Helper()
	status, answer := d.request(http.MethodPost, path, body)
	require.Equal(d.t, http.StatusOK, status, "%s: %s", path, answer)
}

func (d *dashed) state() (s control.State) {
	d.t.Helper()
	status, answer := d.request(http.MethodGet, "up", "")
	require.Equal(d.t, http.StatusOK, status)
	require.NoError(d.t, json.Unmarshal([]byte(answer), &s))
	return s
}

// becomes waits for a state of the cluster.
func (d *dashed) becomes(what string, is func(control.State) bool) {
	d.t.Helper()
	eventually(d.t, what, func(context.Context) bool { return is(d.state()) })
}

// shows waits until a member is in a state.
func (d *dashed) shows(member, state string) {
	d.t.Helper()
	d.becomes(member+" is "+state, func(s control.State) bool { return memberOf(s, member).State == state })
}

func memberOf(s control.State, name string) control.Member {
	for _, m := range s.Members {
		if m.Name == name {
			return m
		}
	}
	return control.Member{}
}

// writes puts a key at members other than one.
func (d *dashed) writes(key, except string) {
	d.t.Helper()
	var at []string
	for name, url := range d.clients {
		if name != except {
			at = append(at, strings.TrimPrefix(url, "http://"))
		}
	}
	client := d.client(at...)
	eventually(d.t, "a write of "+key, func(ctx context.Context) bool {
		_, err := client.Put(ctx, key, "v")
		return err == nil
	})
}

// reads reports whether a member answers linearizable reads with a key.
func (d *dashed) reads(ctx context.Context, member, key string) bool {
	r, err := d.client(strings.TrimPrefix(d.clients[member], "http://")).Get(ctx, key)
	return err == nil && len(r.Kvs) == 1
}

func TestDashboardOperatesMembers(t *testing.T) {
	t.Parallel()
	d := upDashed(t)
	status, page := d.request(http.MethodGet, "", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "<html")

	leader := d.leader()
	d.post("up/members/"+leader+"/kill", "")
	require.Equal(t, "dead", memberOf(d.state(), leader).State)
	require.Equal(t, leader, d.next(launch.Died).Member)
	d.writes("killed", leader)
	status, _ = d.request(http.MethodGet, "braid/status", "")
	require.Equal(t, http.StatusOK, status)
	status, answer := d.request(http.MethodPost, "up/members/"+leader+"/pause", "")
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, answer, leader+" has no process")

	d.post("up/members/"+leader+"/start", "")
	require.Equal(t, leader, d.next(launch.Serving).Member)
	d.shows(leader, "running")
	eventually(t, "the member has what was written meanwhile", func(ctx context.Context) bool {
		return d.reads(ctx, leader, "killed")
	})

	leader = d.leader()
	d.post("up/members/"+leader+"/pause", "")
	require.Equal(t, "paused", memberOf(d.state(), leader).State)
	d.writes("paused", leader)
	d.post("up/members/"+leader+"/resume", "")
	d.shows(leader, "running")
	eventually(t, "the member catches up", func(ctx context.Context) bool { return d.reads(ctx, leader, "paused") })
}

func TestDashboardCutsAndSlowsLinks(t *testing.T) {
	t.Parallel()
	d := upDashed(t, "--net=latency=1ms # each way")
	leader := d.leader()
	d.post("up/members/"+leader+"/cut", "")
	require.Equal(t, "cut off from the other members", memberOf(d.state(), leader).Net)
	require.Equal(t, "is cut off from the other members", d.next(launch.Relinked).How)
	d.writes("cut", leader)
	eventually(t, "the other members have another leader", func(context.Context) bool { return d.leader() != leader })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	require.False(t, d.reads(ctx, leader, "cut"), "the member reaches the others")

	// It is so after a restart, too.
	d.post("up/members/"+leader+"/kill", "")
	d.post("up/members/"+leader+"/start", "")
	require.Equal(t, leader, d.next(launch.Started).Member)
	require.Contains(t, strings.Join(commandOf(t, d.pids[leader]), " "), "loss=100%")
	d.post("up/members/"+leader+"/heal", "")
	d.shows(leader, "running")
	require.Empty(t, memberOf(d.state(), leader).Net)
	eventually(t, "the member catches up", func(ctx context.Context) bool { return d.reads(ctx, leader, "cut") })

	leader = d.leader()
	d.post("up/members/"+leader+"/slow", "")
	require.Equal(t, "slowed down by 100ms each way", memberOf(d.state(), leader).Net)
	d.writes("slow", "")
	for _, action := range []string{"heal", "heal"} {
		d.post("up/members/"+leader+"/"+action, "")
	}
	d.writes("fast", "")
	kept, err := launch.ReadManifest(d.dir)
	require.NoError(t, err)
	require.Equal(t, "latency=1ms # each way", kept.Net)
}

func TestDashboardSwitchesUnderLoad(t *testing.T) {
	t.Parallel()
	d := upDashed(t)
	d.post("up/load", `{"clients":20,"value_bytes":100,"reads":0.5}`)
	d.becomes("rates", func(s control.State) bool {
		return s.Load.Running && s.Load.WritesPerS > 0 && s.Load.ReadsPerS > 0
	})
	status, answer := d.request(http.MethodPost, "up/load", "")
	require.Equal(t, http.StatusConflict, status, answer)
	for _, protocol := range []string{"niagara", "multi-paxos"} {
		require.NotEqual(t, protocol, d.state().Protocol)
		d.post("up/switch", fmt.Sprintf(`{"protocol":%q}`, protocol))
		d.becomes("the switch", func(s control.State) bool {
			require.Empty(t, s.LastError)
			return s.Protocol == protocol && s.Switching == ""
		})
	}
	d.becomes("rates", func(s control.State) bool { return s.Load.WritesPerS > 0 && s.Load.ReadsPerS > 0 })
	require.Zero(t, d.state().Load.Failed)
	status, answer = d.request(http.MethodDelete, "up/load", "")
	require.Equal(t, http.StatusOK, status, answer)
	d.becomes("the end of the load", func(s control.State) bool { return !s.Load.Running && s.Load.WritesPerS == 0 })
	client := d.client()
	eventually(t, "the keys of the load are removed", func(ctx context.Context) bool {
		r, err := client.Get(ctx, loadPrefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && r.Count == 0
	})
	status, answer = d.request(http.MethodPost, "up/load", `{"clients":1000000}`)
	require.Equal(t, http.StatusBadRequest, status, answer)
}

// While auth is on, controls are for users.
func TestDashboardWithAuth(t *testing.T) {
	t.Parallel()
	d := upDashed(t, "--nodes=1")
	enableAuth(t, d.endpoints[0])
	status, _ := d.request(http.MethodPost, "up/members/m1/kill", "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, answer := d.request(http.MethodGet, "up", "")
	require.Equal(t, http.StatusUnauthorized, status)
	require.NotContains(t, answer, "m1")
	status, answer = d.request(http.MethodPost, "v3/auth/authenticate", `{"name":"root","password":"r"}`)
	require.Equal(t, http.StatusOK, status, answer)
	var user struct{ Token string }
	require.NoError(t, json.Unmarshal([]byte(answer), &user))
	d.token = user.Token
	d.post("up/switch", `{"protocol":"iss"}`)
	d.becomes("the switch", func(s control.State) bool {
		require.Empty(t, s.LastError)
		return s.Protocol == "iss" && s.Switching == ""
	})
	d.post("up/load", `{"clients":10}`)
	d.becomes("rates", func(s control.State) bool { return s.Load.WritesPerS > 0 && s.Load.ReadsPerS > 0 })
	require.Zero(t, d.state().Load.Failed)
	status, answer = d.request(http.MethodDelete, "up/load", "")
	require.Equal(t, http.StatusOK, status, answer)
	d.becomes("the end of the load", func(s control.State) bool { return !s.Load.Running })
	require.Empty(t, d.state().LastError)
}

// Paused members end with braid up, also if it is killed.
func TestPausedMembersLeaveNoProcess(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*dashed){
		"stopped": func(d *dashed) { d.stop() },
		"killed":  func(d *dashed) { kill(d.t, d.cmd.Process.Pid) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := upDashed(t)
			d.post("up/members/m1/pause", "")
			end(d)
			<-d.ended
			eventually(t, "the end of all members", func(context.Context) bool {
				return gone(d.pids["m1"]) && gone(d.pids["m2"]) && gone(d.pids["m3"])
			})
		})
	}
}
