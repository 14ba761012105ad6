package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/launch"
)

// Members of a cluster are killed right after an acknowledged write, and started with another protocol on the command
// line, or with none, which is Raft. They print the kind of the directory and the flag that opens it, and leave it
// unchanged. With that flag the last write is there. The same holds for directories that do not record their kind.
func TestAnotherProtocolIsRefusedAfterAKill(t *testing.T) {
	t.Parallel()
	for protocol, others := range map[string][]string{"iss": {"raft", "", "lcr"}, "multi-paxos": {"raft", "iss"},
		"niagara": {"iss", "multi-paxos", "raft"}} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			dir := dataDir(t)
			c := up(t, dir, "--protocol="+protocol)
			client := c.client()
			for i := range 25 {
				_, err := client.Put(t.Context(), fmt.Sprintf("key-%d", i), "v")
				require.NoError(t, err)
			}
			var commands [][]string
			for _, m := range []string{"m1", "m2", "m3"} {
				commands = append(commands, commandOf(t, c.pids[m]))
			}
			for _, pid := range c.pids {
				kill(t, pid)
			}
			require.NoError(t, c.cmd.Process.Signal(syscall.SIGKILL))
			<-c.ended
			eventually(t, "the end of all members", func(context.Context) bool {
				return gone(c.pids["m1"]) && gone(c.pids["m2"]) && gone(c.pids["m3"])
			})
			for at, command := range commands {
				if at == 1 { // as an earlier version leaves it
					forgetKind(t, filepath.Join(dir, "m2", logDir, "member.json"))
				}
				before := fingerprint(t, filepath.Join(dir, fmt.Sprintf("m%d", at+1)))
				for _, other := range others {
					if at != 1 && (protocol == "niagara" && other == "raft" || other == "") {
						continue // is opened: see TestMembersWithOtherProtocolNames and TestMembersWithoutAProtocol
					}
					_, stderr, code := do(t, "", withOther(command, other)...)
					require.Equal(t, exitFailed, code, stderr)
					require.Contains(t, stderr, "start it with --protocol "+protocol)
				}
				require.Equal(t, before, fingerprint(t, filepath.Join(dir, fmt.Sprintf("m%d", at+1))))
			}
			again := up(t, dir)
			got, err := again.client().Get(t.Context(), "key-24")
			require.NoError(t, err)
			require.Len(t, got.Kvs, 1)
			require.True(t, launch.Exists(dir))
		})
	}
}

// withOther is a member's command with another protocol, or with none, and without flags that the protocol does not
// have.
func withOther(command []string, protocol string) []string {
	command = slices.DeleteFunc(slices.Clone(command), func(arg string) bool {
		return slices.ContainsFunc([]string{"--protocol=", "--epoch-", "--instances=", "--placement=", "--leaders="},
			func(prefix string) bool {
				return strings.HasPrefix(arg, prefix)
			})
	})
	if protocol != "" {
		command = append(command, "--protocol="+protocol)
	}
	return command
}

// forgetKind removes the kind of the log from an identity.
func forgetKind(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(b), `,"log_kind":{`)
	require.True(t, ok, string(b))
	_, after, _ := strings.Cut(rest, "}")
	require.NoError(t, os.WriteFile(file, []byte(before+after), 0o600))
}

// fingerprint is the names, sizes and times of change of all files below a directory.
func fingerprint(t *testing.T, dir string) (all []string) {
	t.Helper()
	require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			all = append(all, fmt.Sprintf("%s %d %s", path, info.Size(), info.ModTime()))
		}
		return err
	}))
	return all
}
