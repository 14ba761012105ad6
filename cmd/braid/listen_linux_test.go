package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testcert"
)

// TestSocketsOfUnix: clients connect over sockets of Unix, and over TLS and plain to one port. A file that a killed
// member left is replaced, one with a listener is not, nor one that is no socket; the last member removes it.
func TestSocketsOfUnix(t *testing.T) {
	t.Parallel()
	ca := testcert.New(t)
	ca.Issue("m1")
	f := newServeFlags(t)
	dir := t.TempDir()
	plain, secure := filepath.Join(dir, "plain"), filepath.Join(dir, "secure")
	more := []string{"--listen-client-urls=https://" + f.client + ",unix://" + plain + ",unixs://" + secure,
		"--cert-file=" + ca.Path("m1.crt"), "--key-file=" + ca.Path("m1.key")}
	c := serving(t, f, more...)
	require.Contains(t, c.stderr.String(), "the certificate does nothing for unix://"+plain+" in --listen-client-urls")
	ctl := func(endpoint string, args ...string) string {
		return ok(t, append([]string{"ctl", "--endpoints", endpoint}, args...)...)
	}
	ctl("unix://"+plain, "put", "k", "v")
	ctl("http://"+f.client, "put", "l", "v")
	require.Equal(t, "v", ctl("https://"+f.client, "get", "k", "--print-value-only", "--cacert", ca.Path("ca.crt")))
	require.Equal(t, "v", ctl("unixs://"+secure, "get", "l", "--print-value-only", "--insecure-skip-tls-verify",
		"--insecure-transport=false"))

	require.Contains(t, ok(t, "status", "--endpoints", "unix://"+plain), "m1")

	other := newServeFlags(t)
	_, stderr, code := do(t, "", other.args("--listen-client-urls=unix://"+plain)...)
	require.NotZero(t, code)
	require.Contains(t, stderr, plain+": bind: address already in use")
	kill(t, c.cmd.Process.Pid)
	c.exit()
	require.FileExists(t, plain, "left by the killed process")
	again := serving(t, f, more...)
	require.Equal(t, "v", ctl("unix://"+plain, "get", "k", "--print-value-only"))
	again.stop()
	require.NoFileExists(t, plain)
	require.NoFileExists(t, secure)

	require.NoError(t, os.WriteFile(plain, []byte("mine"), 0o600))
	_, _, code = do(t, "", f.args(more...)...)
	require.NotZero(t, code)
	content, err := os.ReadFile(plain)
	require.NoError(t, err)
	require.Equal(t, "mine", string(content))
}
