package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/internal/testcert"
	"github.com/braidlog/braid/internal/testsize"
)

// sees waits until braid status --events prints an event of a kind with a text.
func sees(t *testing.T, kind, text string, flags ...string) {
	t.Helper()
	var out string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("when a %s event was looked for, there were: %s", kind, out)
		}
	})
	eventually(t, kind+" event: "+text, func(context.Context) bool {
		out, _, _ = do(t, "", append([]string{"status", "--events", "--json"}, flags...)...)
		return slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
			var e status.Event
			return json.Unmarshal([]byte(line), &e) == nil && e.Kind == kind && strings.Contains(e.Text, text)
		})
	})
}

// TestEvents: each change of a cluster of processes is an event of its members.
func TestEvents(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := unstarted(t)
	c.more = []string{"--quota-backend-bytes", "3000000"}
	c.start(1, 2, 3)
	for i := 1; i <= 3; i++ {
		c.healthy(i)
	}
	at := []string{"--endpoints", c.flags[1].client}
	ctl := func(args ...string) string { return ok(t, slices.Concat([]string{"ctl"}, at, args)...) }
	sees(t, "started", "m3 started version", at...)
	sees(t, "link-up", "has a link to m2", at...)

	leader := c.leader()
	c.kill(leader)
	name := c.flags[leader].name
	other := leader%3 + 1
	at[1] = c.flags[other].client
	sees(t, "link-down", "has no link to "+name, at...)
	sees(t, "leads", " leads", at...)
	c.start(leader)
	c.healthy(leader)

	ctl("member", "add", "m4", "--learner", "--peer-urls", "http://127.0.0.1:1")
	sees(t, "membership", "was added as a learner", at...)
	ok(t, slices.Concat([]string{"tune"}, at, []string{"heartbeat-interval=50ms"})...)
	sees(t, "settings", "heartbeat-interval", at...)

	c.fill(other)
	sees(t, "alarm-raised", "the alarm NOSPACE is raised for m", at...)
	ctl("alarm", "disarm")
	sees(t, "alarm-ended", "the alarm NOSPACE for m", at...)

	ctl("user", "add", "root:secret")
	ctl("user", "grant-role", "root", "root")
	ctl("auth", "enable")
	_, _, code := do(t, "", slices.Concat([]string{"ctl"}, at, []string{"--user", "root:wrong", "get", "a"})...)
	require.NotZero(t, code)
	sees(t, "login-failed", "with a wrong user, password or token", append(at, "--user", "root:secret")...)
}

// leader is the number of the member that leads.
func (c *trio) leader() (n int) {
	eventually(c.t, "a leader", func(ctx context.Context) bool {
		for i := 1; i <= 3; i++ {
			r, err := c.client(i).Status(ctx, c.flags[i].client)
			if err == nil && r.Leader == r.Header.MemberId {
				n = i
			}
		}
		return n != 0
	})
	return n
}

// fill puts values until the quota of the database refuses one.
func (c *trio) fill(i int) {
	client, value := c.client(i), strings.Repeat("x", 1<<20)
	eventually(c.t, "a full database", func(ctx context.Context) bool {
		_, err := client.Put(ctx, "filler", value)
		return err != nil && strings.Contains(err.Error(), "database space exceeded")
	})
}

// TestRefusedHandshakesAreEvents: a client that does not trust the member's certificate is reported.
func TestRefusedHandshakesAreEvents(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	ca := testcert.New(t)
	ca.Issue("m1")
	f := newServeFlags(t)
	begin(t, "", "serve", "--name", f.name, "--data-dir", f.dir, "--listen-peer-urls", "http://"+f.peer,
		"--listen-client-urls", "https://"+f.client, "--advertise-client-urls", "https://"+f.client,
		"--cert-file", ca.Path("m1.crt"), "--key-file", ca.Path("m1.key"))
	at := []string{"--endpoints", "https://" + f.client, "--cacert", ca.Path("ca.crt")}
	sees(t, "started", "m1 started version", at...)
	dialer := &tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS13}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := dialer.DialContext(ctx, "tcp", f.client)
	require.ErrorContains(t, err, "certificate")
	sees(t, "tls-refused", "TLS handshakes of clients with m1 failed", at...)
}
