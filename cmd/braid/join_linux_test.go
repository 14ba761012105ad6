package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testcert"
)

// secureFlags are a member's flags with TLS between members.
func secureFlags(f serveFlags, a *testcert.Authority) []string {
	return []string{
		"--data-dir", f.dir, "--listen-client-urls", "http://" + f.client, "--listen-peer-urls", "https://" + f.peer,
		"--peer-cert-file", a.Path(f.name + ".crt"), "--peer-key-file", a.Path(f.name + ".key"),
		"--peer-trusted-ca-file", a.Path("ca.crt"),
	}
}

// printed are the variables that member add prints.
func printed(stdout string) (env []string) {
	for line := range strings.Lines(stdout) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(name, "ETCD_") {
			env = append(env, name+"="+strings.Trim(value, `"`))
		}
	}
	return env
}

// TestWhatMemberAddPrintsStartsTheMember, while auth is on, with TLS between members: the joiner has a certificate
// and no user. Its data starts again with any flags of the initial cluster.
func TestWhatMemberAddPrintsStartsTheMember(t *testing.T) {
	t.Parallel()
	ca, evil := testcert.New(t), testcert.New(t)
	m1, m2 := newServeFlags(t), newServeFlags(t)
	m2.name = "m2"
	ca.Issue("m1")
	ca.Issue("m2")
	evil.Issue("m2")
	start := func(f serveFlags, env []string, a *testcert.Authority, more ...string) *invocation {
		c, _ := beginWith(t, env, "", append(append([]string{"serve"}, secureFlags(f, a)...), more...)...)
		return c
	}
	start(m1, nil, ca, "--name=m1", "--initial-cluster=m1=https://"+m1.peer)
	eventually(t, "health", func(ctx context.Context) bool { return healthy(ctx, m1.client) })
	ctl := func(more ...string) string {
		return ok(t, append([]string{"ctl", "--user=root:r", "--endpoints", m1.client}, more...)...)
	}
	for _, command := range []string{"user add root:r", "user grant-role root root", "auth enable"} {
		ok(t, append([]string{"ctl", "--endpoints", m1.client}, strings.Fields(command)...)...)
	}
	ctl("put", "a", "b")

	early := start(m2, nil, ca, "--name=m2", "--initial-cluster-state=existing", "--initial-cluster=m1=https://"+m1.peer+
		",m2=https://"+m2.peer)
	code, stderr := early.exit()
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "braid ctl member add m2")

	env := printed(ctl("member", "add", "m2", "--peer-urls=https://"+m2.peer))
	require.Len(t, env, 4, "%v", env)
	code, stderr = start(m2, env, evil).exit()
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no member at https://"+m1.peer+" tells who the members are")

	joins := func(c *invocation) {
		eventually(t, "m2 serves", func(ctx context.Context) bool {
			select {
			case <-c.ended:
				require.Fail(t, "the member ended", c.stderr.String())
			default:
			}
			return healthy(ctx, m2.client)
		})
		require.Equal(t, "a\nb", ok(t, "ctl", "--user=root:r", "--endpoints", m2.client, "get", "a"))
		stopped(t, c)
	}
	joins(start(m2, env, ca))
	joins(start(m2, env, ca))                                                       // it finds its data
	joins(start(m2, nil, ca, "--name=m2", "--initial-cluster=m2=https://"+m2.peer)) // as kubeadm upgrade writes it
}

// TestJoinByClientURLs names the members' addresses for clients and for members, with auth off and on.
func TestJoinByClientURLs(t *testing.T) {
	t.Parallel()
	m1, m2 := newServeFlags(t), newServeFlags(t)
	m2.name = "m2"
	serving(t, m1)
	ok(t, "ctl", "--endpoints", m1.client, "member", "add", "m2", "--peer-urls=http://"+m2.peer)
	ok(t, "ctl", "--endpoints", m1.client, "user", "add", "root:r")
	ok(t, "ctl", "--endpoints", m1.client, "user", "grant-role", "root", "root")
	ok(t, "ctl", "--endpoints", m1.client, "auth", "enable")
	join := func(url string) []string {
		return []string{"--initial-cluster-state=existing", "--join", "http://" + url}
	}
	_, stderr, code := do(t, "", m2.args(join(m1.client)...)...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "auth is on")
	require.Contains(t, stderr, "give --join the peer URLs")
	stopped(t, serving(t, m2, join(m1.peer)...))
}
