package main

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testcert"
)

func TestMutualTLSEverywhere(t *testing.T) {
	t.Parallel()
	good, evil := testcert.New(t), testcert.New(t)
	for _, name := range []string{"m1", "m2", "m3", "client"} {
		good.Issue(name)
	}
	evil.Issue("client")
	members := map[string]serveFlags{}
	var list []string
	for _, name := range []string{"m1", "m2", "m3"} {
		f := newServeFlags(t)
		f.name = name
		members[name] = f
		list = append(list, name+"=https://"+f.peer)
	}
	for name, f := range members {
		begin(t, "", "serve", "--name", name, "--data-dir", f.dir, "--initial-cluster", strings.Join(list, ","),
			"--listen-client-urls", "https://"+f.client, "--listen-peer-urls", "https://"+f.peer,
			"--cert-file", good.Path(name+".crt"), "--key-file", good.Path(name+".key"), "--trusted-ca-file",
			good.Path("ca.crt"), "--client-cert-auth",
			"--peer-cert-file", good.Path(name+".crt"), "--peer-key-file", good.Path(name+".key"),
			"--peer-trusted-ca-file", good.Path("ca.crt"), "--peer-cert-names-host")
	}
	flags := func(a *testcert.Authority) []string {
		return []string{"--cacert", good.Path("ca.crt"), "--cert", a.Path("client.crt"), "--key", a.Path("client.key"),
			"--endpoints", "https://" + members["m2"].client}
	}
	eventually(t, "a write", func(context.Context) bool {
		_, _, code := do(t, "", append([]string{"ctl", "put", "a", "b"}, flags(good)...)...)
		return code == 0
	})
	require.Equal(t, "a\nb", ok(t, append([]string{"ctl", "get", "a"}, flags(good)...)...))
	eventually(t, "status of all members", func(context.Context) bool { // they publish their addresses after the start
		stdout, _, code := do(t, "", append([]string{"status"}, flags(good)...)...)
		return code == 0 && strings.Contains(stdout, "leader")
	})

	dir := t.TempDir()
	require.Contains(t, ok(t, append([]string{"backup", dir}, flags(good)...)...), "is complete")
	_, _, code := do(t, "", append([]string{"backup", dir, "--timeout=5s"}, flags(evil)...)...)
	require.Equal(t, exitFailed, code, "a certificate of another authority")

	_, _, code = do(t, "", append([]string{"ctl", "get", "a", "--command-timeout=1s"}, flags(evil)...)...)
	require.NotZero(t, code, "a certificate of another authority")
	_, _, code = do(t, "", "ctl", "get", "a", "--command-timeout=1s", "--endpoints", members["m2"].client)
	require.NotZero(t, code, "no certificate")
}

// TestAutomaticTLS: members make certificates. Links and connections of clients are encrypted; a restart keeps them.
func TestAutomaticTLS(t *testing.T) {
	t.Parallel()
	members, metrics, list := map[string]serveFlags{}, map[string]string{}, []string(nil)
	for _, name := range []string{"m1", "m2", "m3"} {
		members[name], metrics[name] = newServeFlags(t), newServeFlags(t).client
		list = append(list, name+"=https://"+members[name].peer)
	}
	serve := func(name string) *invocation {
		f := members[name]
		m, _ := begin(t, "", "serve", "-name", name, "--data-dir", f.dir, "--initial-cluster", strings.Join(list, ","),
			"--listen-client-urls", "https://"+f.client, "--listen-peer-urls", "https://"+f.peer,
			"--auto-tls", "--peer-auto-tls", "--listen-metrics-urls", "https://"+metrics[name])
		return m
	}
	serve("m1")
	serve("m2")
	third := serve("m3")
	flags := []string{"--insecure-skip-tls-verify", "--insecure-transport=false", "--endpoints",
		"https://" + members["m3"].client}
	put := func() bool {
		_, _, code := do(t, "", append([]string{"ctl", "put", "a", "b"}, flags...)...)
		return code == 0
	}
	eventually(t, "a write", func(context.Context) bool { return put() })
	_, _, code := do(t, "", "ctl", "get", "a", "--command-timeout=1s", "--endpoints", members["m3"].client)
	require.NotZero(t, code, "no TLS")
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := web.Get("https://" + metrics["m3"] + "/readyz")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	third.stop()
	serve("m3")
	eventually(t, "a write", func(context.Context) bool { return put() })
	require.Equal(t, "a\nb", ok(t, append([]string{"ctl", "get", "a"}, flags...)...))
}
