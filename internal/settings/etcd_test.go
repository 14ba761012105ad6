package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// etcdFlags are all flags of etcd, with their defaults. The module of rivals, which requires etcd's server whole, tests
// that the file has those of its version.
func etcdFlags(t *testing.T) map[string]string {
	data, err := os.ReadFile("testdata/etcd-flags")
	require.NoError(t, err)
	out := map[string]string{"initial-cluster-state": "new", "v2-deprecation": "gone", "discovery-fallback": "exit",
		"config-file": ""}
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		require.True(t, ok, line)
		out[name] = value
	}
	require.Greater(t, len(out), 50)
	return out
}

// TestEveryFlagOfEtcdIsKnown: a flag of etcd either has the same effect here, or is reported. With etcd's own
// default, which manifests contain, the member starts.
func TestEveryFlagOfEtcdIsKnown(t *testing.T) {
	for name, value := range etcdFlags(t) {
		s, err := load(nil, variable(name)+"="+value)
		require.NoError(t, err, "%s=%s", name, value)
		require.NotContains(t, fmt.Sprint(s.Ignored()), "no such flag", name)
	}
}

// TestWhatMustNotBeMissingIsRefused sets such flags on the command line, as a variable and in the file.
func TestWhatMustNotBeMissingIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "braid.yaml")
	for _, v := range foreignFlags() {
		value := "x"
		if v.isBool {
			value = map[string]string{"true": "false"}[v.harmless]
			if value == "" {
				value = "true"
			}
		}
		require.NoError(t, os.WriteFile(file, []byte(v.name+": "+value), 0o600))
		for from, load := range map[string]func() (*Settings, error){
			"flag":     func() (*Settings, error) { return load([]string{"--" + v.name + "=" + value}) },
			"variable": func() (*Settings, error) { return load(nil, variable(v.name)+"="+value) },
			"file":     func() (*Settings, error) { return load([]string{"--config-file=" + file}) },
		} {
			s, err := load()
			if v.refuse {
				require.ErrorContains(t, err, "--"+v.name+" (variable "+variable(v.name)+"): "+v.why, from)
				continue
			}
			require.NoError(t, err, "%s %s", from, v.name)
			require.Equal(t, []string{"--" + v.name + " does nothing: " + v.why}, s.Ignored(), from)
		}
	}
}

// Booleans may be written in all forms that etcd accepts.
func TestOffIsOffHoweverItIsWritten(t *testing.T) {
	for _, off := range []string{"false", "False", "F", "0", ""} {
		s, err := load(nil, "ETCD_FORCE_NEW_CLUSTER="+off, "ETCD_ENABLE_V2="+off)
		require.NoError(t, err, off)
		require.Empty(t, s.Ignored(), off)
		require.False(t, s.ForceNew, off)
	}
	for _, on := range []string{"1", "True"} {
		s, err := load(nil, "ETCD_FORCE_NEW_CLUSTER="+on, "ETCD_ENABLE_V2="+on)
		require.NoError(t, err)
		require.Len(t, s.Ignored(), 1, on)
		require.True(t, s.ForceNew, on)
	}
}

func TestUnknownVariablesAreNamed(t *testing.T) {
	s, err := load(nil, "ETCD_CLIENT_CLR_FILE=x", "ETCD_EMPTY=", "OTHER=1", "ETCD_NAME=a", "ETCDCTL_API=3")
	require.NoError(t, err)
	require.Equal(t, "a", s.Name)
	require.Equal(t, []string{"variable ETCD_CLIENT_CLR_FILE does nothing: there is no such flag"}, s.Ignored())
	s, err = load([]string{"--join=http://h:1"})
	require.NoError(t, err)
	require.Equal(t, []string{"--join does nothing with --initial-cluster-state new"}, s.Ignored())
	s, err = load([]string{"--lane-prefix=a", "--auth-token=jwt,pub-key=p", "--auth-token-ttl=5"})
	require.NoError(t, err)
	require.Len(t, s.Ignored(), 2)
	for protocol, why := range map[string]string{
		"raft": " until lanes are turned on (lanes=true)", "iss": ": it has no lanes",
	} {
		s, err = load([]string{"--lane-prefix=a", "--protocol=" + protocol})
		require.NoError(t, err)
		require.Equal(t, []string{"--lane-prefix does nothing with --protocol " + protocol + why}, s.Ignored())
	}
	s, err = load([]string{"--lane-prefix=a", "--protocol=lcr", "--auth-token-ttl=5"})
	require.NoError(t, err)
	require.Empty(t, s.Ignored())
}
