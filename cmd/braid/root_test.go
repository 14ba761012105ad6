package main

import (
	"bytes"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

func call(args ...string) (stdout, stderr string, code int) {
	var out, err bytes.Buffer
	code = run(args, &out, &err)
	return out.String(), err.String(), code
}

func TestWrongUse(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"upp", `unknown command "upp"`},
		{"statsu", "\tstatus"},
		{"log dmup", `did you mean "dump"?`},
		{"up --node 3", "did you mean --nodes?"},
		{"up --nodes x", "invalid argument"},
		{"up --nodes 0", "--nodes 0: it is 1 to 9"},
		{"up --nodes 10", "--nodes 10: it is 1 to 9"},
		{"up --base-port -1", "--base-port -1 does not exist"},
		{"up --data=", "--data is empty"},
		{"up --protocol paxos", `--protocol "paxos": this version has raft, craft, niagara, lcr, multi-paxos and iss`},
		{"up --protocol rs-raft", `is for "braid bench" and "braid sim" alone`},
		{"up --protocol niagara --instances 65", "--instances 65: not in 0…64"},
		{"up --protocol niagara --leaders m1", "--leaders m1: it is together or spread"},
		{"up --leaders spread", "--leaders spread: protocol raft has one leader; niagara has several"},
		{"up --cards 10", "--cards 10: it is 1 to 9"},
		{"up --instance 2", "did you mean --instances?"},
		{"serve --instances 2", "--instances 2: protocol raft has one instance; niagara merges several"},
		{"up --placement confirm", `--placement "confirm" is not for protocol raft; there is: copy, code`},
		{"up --protocol craft --placement copy", `--placement "copy" is not for protocol craft; there is: code`},
		{"up --code-k 2", "--code-k 2: placement copy has no use for it"},
		{"up --protocol craft --code-k 100", "--code-k 100: not in 0…64"},
		{"up --max-request-bytes 0", "--max-request-bytes must be 1 to"},
		{"serve --protocol craft --placement copy", `--placement "copy" is not for protocol craft; there is: code`},
		{"up --instances 4", "--instances 4: protocol raft has one instance"},
		{"up --net latency=fast", "--net: "},
		{"serve --net speed=1", "--net: "},
		{"up --net regions=us-east-1+nowhere", `region "nowhere" is not known`},
		{"up --net latency=1ms;1~2:nics=2", "known are latency, rtt, jitter, loss in a part about a pair"},
		{"up --net @/nowhere", "--net: open /nowhere"},
		{"serve --net regions=us-east-1+eu-west-1", "ends in no number"},
		{"up now", "unknown command"},
		{"serve --name=", `--name ""`},
		{"serve --listen-client-url http://127.0.0.1:1", "did you mean --listen-client-urls?"},
		{"version 2", "unknown command"},
		{"log dump", "accepts 1 arg"},
		{"log dump /nowhere", "/nowhere is no directory"},
		{"status --endpoints=", "--endpoints is empty"},
		{"reshape", "--instances 0: it is 1 to 64"},
		{"tune lease-reads", `"lease-reads" is not NAME=VALUE`},
		{"tune code-k=1 code-k=2", "code-k is there twice"},
		{"switch", "requires at least 1 arg"},
		{"switch relays=2", `"relays=2": the protocol comes first`},
		{"switch iss relays", `"relays" is not NAME=VALUE`},
		{"switch iss --dryrun", "did you mean --dry-run?"},
		{"reshape --instances 65", "--instances 65: it is 1 to 64"},
		{"reshape --instances 2 --user root", "--user: it is NAME:PASSWORD"},
		{"reshape --instance 2", "did you mean --instances?"},
		{"reshaep", "\treshape"},
		{"quota --bytes=1", "the prefix is missing"},
		{"quota a", "a quota has --bytes, --keys or both, or --remove"},
		{"quota a --keys=1 --remove", "a quota has --bytes, --keys or both, or --remove"},
		{"quota a --keys=-1", "no negative bound"},
		{"zones", "requires at least 1 arg"},
		{"zones m1", `"m1" is not MEMBER=ZONE`},
		{"zones m1=", `"m1=" is not MEMBER=ZONE`},
		{"zones m1=a/b", "the zone is not a name"},
		{"zones m1=a m1=b", "m1 is there twice"},
		{"zones m1=a --endpoints=", "--endpoints is empty"},
		{"zones m1=a --timeout=0s", "--timeout must be positive"},
	} {
		_, stderr, code := call(strings.Fields(c.args)...)
		require.Equal(t, exitUsage, code, "%s: %s", c.args, stderr)
		require.Contains(t, stderr, c.want, c.args)
		require.Contains(t, stderr, "--help", c.args)
	}
}

// TestFlagsOfMembersAreNotTuned: no member is asked.
func TestFlagsOfMembersAreNotTuned(t *testing.T) {
	for _, name := range []string{"name", "listen-client-urls", "snapshot-bytes"} {
		_, stderr, code := call("tune", "--endpoints=127.0.0.1:1", "election-timeout=5s", name+"=1")
		require.Equal(t, exitFailed, code)
		require.Equal(t, "braid tune: "+name+": it is a flag of each member: restart the member with it\n", stderr)
		_, stderr, code = call("switch", "iss", "--endpoints=127.0.0.1:1", name+"=1")
		require.Equal(t, exitFailed, code)
		require.Equal(t, "braid switch: "+name+": it is a flag of each member: restart the member with it\n", stderr)
	}
}

func TestVersion(t *testing.T) {
	stdout, _, code := call("version")
	require.Zero(t, code)
	require.Contains(t, stdout, "braid "+braid.Version+"\netcd API v3.7.")
	stdout, _, code = call("version", "--json")
	require.Zero(t, code)
	require.Contains(t, stdout, `"braid":"`+braid.Version+`"`)
}

func TestEveryCommandHasHelp(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "ctl" || c.Name() == "utl" || c.Name() == "help" || c.Name() == "completion" {
			return // etcd's and cobra's
		}
		require.NotEmpty(t, c.Short, c.CommandPath())
		if !c.HasSubCommands() && !c.Hidden {
			require.NotEmpty(t, c.Example, c.CommandPath())
			require.NotNil(t, c.Args, c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
}

// TestCommandsAreMadeWithoutMuchWork: every process constructs all commands before it runs one. That is some ten
// thousand allocations; a computation for the help of one command would make many more.
func TestCommandsAreMadeWithoutMuchWork(t *testing.T) {
	require.Less(t, testing.AllocsPerRun(1, func() { newRoot() }), 50_000.0)
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"node", "nodes", 1}, {"jsn", "json", 1}, {"abc", "cba", 2}} {
		require.Equal(t, c.want, distance(c.a, c.b), "%s %s", c.a, c.b)
	}
}

// An error of the library that begins with the command's name is printed with one such name.
func TestReportNamesTheCommandOnce(t *testing.T) {
	root := &cobra.Command{Use: "braid"}
	tune := &cobra.Command{Use: "tune"}
	root.AddCommand(tune)
	var out bytes.Buffer
	require.Equal(t, exitFailed, report(tune, &braid.TuneError{Name: "lanes", Reason: "no"}, true, &out))
	require.Equal(t, "braid tune: lanes: no\n", out.String())
}

// Groups that etcd and cobra define refuse what they do not have, as braid's own.
func TestUnknownCommandsOfOthers(t *testing.T) {
	for args, want := range map[string]struct {
		stderr string
		code   int
	}{
		"ctl bogus":        {"braid ctl: unknown command \"bogus\"\n", exitFailed},
		"ctl pt a b":       {"braid ctl: unknown command \"pt\"; did you mean \"put\"?\n", exitFailed},
		"ctl lease gant 1": {"braid ctl lease: unknown command \"gant\"; did you mean \"grant\"?\n", exitFailed},
		"utl snpshot":      {"braid utl: unknown command \"snpshot\"; did you mean \"snapshot\"?\n", exitFailed},
		"completion bsh": {"braid completion: unknown command \"bsh\"; did you mean \"bash\"?\n" +
			"See \"braid completion --help\".\n", exitUsage},
	} {
		stdout, stderr, code := call(strings.Fields(args)...)
		require.Equal(t, want.stderr, stderr, args)
		require.Equal(t, want.code, code, args)
		require.Empty(t, stdout, args)
	}
	for _, args := range []string{"ctl", "utl snapshot", "completion"} {
		stdout, stderr, code := call(strings.Fields(args)...)
		require.Zero(t, code, args)
		require.Contains(t, stdout, "Usage:", args)
		require.Empty(t, stderr, args)
	}
}

func TestVersionFlag(t *testing.T) {
	stdout, _, code := call("--version")
	require.Zero(t, code)
	require.Equal(t, "braid "+braid.Version+"\n", stdout)
}

func TestCompletion(t *testing.T) {
	stdout, _, _ := call("help")
	require.Contains(t, stdout, "  completion ")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		stdout, stderr, code := call("completion", shell)
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, "braid", shell)
	}
}

func TestSizesWithUnits(t *testing.T) {
	for value, bytes := range map[string]string{"8GB": "8000000000", "8GiB": "8589934592", "1.5MiB": "1572864",
		"64K": "64000", "2tb": "2000000000000"} {
		_, stderr, code := call("serve", "--quota-backend-bytes", value)
		require.Equal(t, exitUsage, code)
		require.Equal(t, "braid serve: --quota-backend-bytes "+value+": it is a number without a unit: write "+bytes+
			"\nSee \"braid serve --help\".\n", stderr)
	}
	file := filepath.Join(t.TempDir(), "braid.yml")
	require.NoError(t, os.WriteFile(file, []byte("quota-backend-bytes: 8GB\n"), 0o600))
	_, stderr, code := call("serve", "--config-file", file)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "write 8000000000")
	for _, value := range []string{"x", "8", "8XB", "8iB", "GB", "-1GB", "8B"} {
		_, ok := sizeOf(value)
		require.False(t, ok, value)
	}
}

// hangsUp is the address of a server that ends each connection after its first bytes, as a member with TLS does.
func hangsUp(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = c.Read(make([]byte, 1))
				_ = c.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return l.Addr().String()
}

func TestTLSAgainstPlainText(t *testing.T) {
	plain := httptest.NewServer(nil)
	t.Cleanup(plain.Close)
	for endpoint, want := range map[string]string{
		"http://" + hangsUp(t):                                "the server may expect TLS: write https://",
		"https://" + strings.TrimPrefix(plain.URL, "http://"): "the server does not speak TLS: write http://",
	} {
		for _, command := range []string{"status", "advise", "switch iss --timeout=10s", "bench kv --duration=1s"} {
			stdout, stderr, code := call(append(strings.Fields(command), "--endpoints", endpoint)...)
			require.Equal(t, exitFailed, code)
			require.Contains(t, stdout+stderr, want, command)
		}
	}
}
