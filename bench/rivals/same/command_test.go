package same

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/bench"
)

var checks = flag.Bool("checks", false, "run the commands check perf and check datascale, too: minutes")

// Parts of outputs.
var (
	leaseID  = regexp.MustCompile(`lease ([0-9a-f]+) granted`)
	memberID = regexp.MustCompile(`Member +([0-9a-f]+) added`)
	ownID    = regexp.MustCompile(`(?m)^([0-9a-f]+), started, m1`)
	otherID  = regexp.MustCompile(`(?m)^([0-9a-f]+), started, m2`)
	mark     = regexp.MustCompile(`"mod_revision":(\d+)`)
	left     = regexp.MustCompile(`remaining\(\d+s\)|remaining\(TIME\)|"ttl":\d+`)
	numbers  = regexp.MustCompile(`\d+`)
	sizes    = regexp.MustCompile(`[\d.]+ [kMG]?B|\d+%`)
	paths    = regexp.MustCompile(`/\S+`)
	twice    = regexp.MustCompile(`member ID already exist|Peer URLs already exists`) // by whether a second has passed
	figures  = regexp.MustCompile(`(?s).*exit`)
	joined   = regexp.MustCompile(`(?m)^ETCD_INITIAL_CLUSTER=.*$`)
)

func keeps(name string, of *regexp.Regexp) map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{name: of}
}

func hides(all ...*regexp.Regexp) []*regexp.Regexp { return all }

// ofKeys are commands about keys, watches and leases.
var ofKeys = []command{
	{line: "put greeting hello"},
	{line: "put greeting hi --prev-kv -w json"},
	{line: "put greeting -- --dashed"},
	{line: "put from-input", in: "text\n"},
	{line: "put greeting --ignore-value x"},
	{line: "put missing --ignore-value"},
	{line: "put"},
	{line: "get greeting"},
	{line: "get greeting -w json", keep: keeps("REVISION", mark)},
	{line: "get greeting -w fields"},
	{line: "get greeting -w table"},
	{line: "get --prefix gree --keys-only"},
	{line: "get --prefix gree --count-only -w fields"},
	{line: "get a z --limit 1 --order DESCEND --sort-by KEY"},
	{line: "get --from-key a --print-value-only --consistency s"},
	{line: "get greeting --rev 2"},
	{line: "get greeting --rev 999999"},
	{line: "get greeting --hex"},
	{line: "txn", in: "mod(\"greeting\") = \"$REVISION\"\n\nput greeting other\nget greeting\n\nget greeting\n\n"},
	{line: "txn -w json", in: "value(\"greeting\") = \"x\"\nversion(\"greeting\") > \"0\"\n\nput a b\n\n" +
		"del greeting\nget greeting\n\n"},
	{line: "txn", in: "nonsense\n\n\n\n"},
	{line: "put many/1 1"}, {line: "put many/2 2"}, {line: "put many/3 3"},
	{line: "del many/1"},
	{line: "del --prefix many/ --prev-kv"},
	{line: "del nothing -w json"},
	{line: "watch greeting --rev 1", lines: 3},
	{line: "watch --prefix many/ --rev 1 -w json", lines: 1},
	{line: "watch --prefix many/ --rev 1 --prev-kv", lines: 12},
	{line: "endpoint hashkv"}, // later, keys have ids of leases
	{line: "endpoint hashkv --rev 3"},
	{line: "endpoint hashkv --rev 999999"},
	{line: "lease grant 600", keep: keeps("LEASE", leaseID)},
	{line: "lease grant 0"},
	{line: "put leased x --lease $LEASE"},
	{line: "put leased x --lease 1"},
	{line: "lease timetolive $LEASE", hides: hides(left)},
	{line: "lease timetolive $LEASE --keys", hides: hides(left)},
	{line: "lease timetolive 1234"},
	{line: "lease list"},
	{line: "lease keep-alive $LEASE --once"},
	{line: "lease keep-alive 1234 --once"},
	{line: "lease revoke $LEASE"},
	{line: "lease revoke $LEASE"},
	{line: "get leased"},
	{line: "lock mutex echo held"},
	{line: "lock mutex", lines: 1, hides: hides(numbers)},
	{line: "elect room me", lines: 2, hides: hides(numbers)},
	{line: "put room/1 me"},
	{line: "elect --listen room", lines: 2},
	{line: "compaction $REVISION"},
	{line: "compaction $REVISION"},
	{line: "compaction 999999 --physical"},
	{line: "get greeting --rev 2"},
	{line: "watch greeting --rev 2"},
	{line: "unknown"},
	{line: "get --unknown"},
}

// ofClusters are commands about members and their data.
var ofClusters = []command{
	{line: "endpoint health", hides: hides(numbers)},
	{line: "endpoint health --cluster -w json", hides: hides(numbers)},
	{line: "endpoint status", hides: hides(sizes, numbers)},
	{line: "member list", keep: map[string]*regexp.Regexp{"OWN": ownID, "OTHER": otherID}, anyOrder: true},
	{line: "member list -w fields", hides: hides(numbers)},
	{line: "member add m9 --peer-urls http://127.0.0.1:1 --learner",
		keep: keeps("NEW", memberID), hides: hides(joined)},
	{line: "member add m9 --peer-urls http://127.0.0.1:1 --learner", hides: hides(twice)},
	{line: "member promote $NEW"},
	{line: "member promote $OWN"},
	{line: "member promote 1234"},
	{line: "member update $NEW --peer-urls http://127.0.0.1:2"},
	{line: "member update 1234 --peer-urls http://127.0.0.1:2"},
	{line: "member remove $NEW"},
	{line: "member remove $NEW"},
	{line: "member remove 1234"},
	{line: "member list", anyOrder: true},
	{line: "move-leader 1234"},
	{line: "downgrade cancel"},
	{line: "downgrade cancel -w json", hides: hides(numbers)},
	{line: "downgrade validate 3.7"},
	{line: "downgrade validate three"},
	{line: "downgrade enable 3.5"},
	{line: "alarm list"},
	{line: "alarm disarm"},
	{line: "defrag"},
	{line: "defrag --cluster", hides: hides(numbers)},
	{line: "snapshot save $FILE", hides: hides(sizes, paths)},
	{line: "version"},
	{line: "options"},
}

// ofUsers are commands about users, roles and rights.
var ofUsers = []command{
	{line: "auth status"},
	{line: "auth enable"},
	{line: "user add root:secret"},
	{line: "user add root:secret"},
	{line: "user add ann", in: "pass\n"},
	{line: "user add ann --interactive=false", in: "pass\n"},
	{line: "user add bob:pass"},
	{line: "user add cert --no-password"},
	{line: "role add root"},
	{line: "role add reader"},
	{line: "role add reader"},
	{line: "role grant-permission reader read a z"},
	{line: "role grant-permission reader readwrite own/ --prefix"},
	{line: "role grant-permission reader write b --from-key"},
	{line: "role grant-permission nothing read a"},
	{line: "role get reader"},
	{line: "role get reader -w json"},
	{line: "role get nothing"},
	{line: "role list"},
	{line: "user grant-role root root"},
	{line: "user grant-role bob reader"},
	{line: "user grant-role bob nothing"},
	{line: "user get bob"},
	{line: "user get bob --detail"},
	{line: "user get nothing"},
	{line: "user list"},
	{line: "auth enable"},
	{line: "auth status --user root:secret"},
	{line: "get greeting"},
	{line: "--user bob:pass get greeting"},
	{line: "--user bob:wrong get greeting"},
	{line: "--user nothing:pass get greeting"},
	{line: "--user bob:pass put own/1 x"},
	{line: "--user bob:pass put a x"},
	{line: "--user bob:pass user list"},
	{line: "--user bob:pass user get bob"},
	{line: "--user bob:pass lease grant 60"},
	{line: "--user bob:pass txn", in: "version(\"a\") > \"0\"\n\nput a b\n\n\n"},
	{line: "--user root:secret role revoke-permission reader own/ --prefix"},
	{line: "--user root:secret role revoke-permission reader nothing"},
	{line: "--user bob:pass put own/1 x"},
	{line: "--user root:secret user passwd bob --interactive=false", in: "new\n"},
	{line: "--user bob:pass get greeting"},
	{line: "--user root:secret user revoke-role bob reader"},
	{line: "--user bob:new get greeting"},
	{line: "--user root:secret user delete bob"},
	{line: "--user root:secret user delete bob"},
	{line: "--user root:secret role delete reader"},
	{line: "--user root:secret role delete reader"},
	{line: "--user root:secret user delete root"},
	{line: "--user root:secret auth disable"},
	{line: "auth disable"},
	{line: "user delete root"}, {line: "role delete root"},
}

// ofLeaders are commands that change who leads.
var ofLeaders = []command{
	{line: "move-leader $OTHER", hides: hides(numbers)},
}

// ofLoads are commands that measure; only whether they pass is compared.
var ofLoads = []command{
	{line: "check datascale --load s --auto-compact --auto-defrag", measures: true, hides: hides(figures)},
	{line: "check perf --load s", measures: true, hides: hides(figures)},
}

var allCommands = [][]command{ofKeys, ofClusters, ofUsers, ofLeaders, ofLoads}

// TestEveryCommandHasARow: each command that docs/compatibility.md calls the same is compared.
func TestEveryCommandHasARow(t *testing.T) {
	page, err := os.ReadFile("../../../docs/compatibility.md")
	require.NoError(t, err)
	_, page, found := bytes.Cut(page, []byte("-run TestCtlPage"))
	require.True(t, found)
	part, _, _ := bytes.Cut(page, []byte("\n\n|"))
	var lines []string
	for _, rows := range allCommands {
		for _, row := range rows {
			lines = append(lines, row.line+" ")
		}
	}
	for _, name := range regexp.MustCompile("`[a-z -]+`").FindAllString(string(part), -1) {
		name = strings.Trim(name, "`")
		has := func(line string) bool { return strings.Contains(" "+line, " "+name+" ") }
		if name != mirrors {
			require.True(t, slices.ContainsFunc(lines, has), "%s has no row", name)
		}
	}
}

// mirrors is a command between two clusters.
const mirrors = "make-mirror"

// TestMirror copies keys from etcd to braid, and from braid to etcd.
func TestMirror(t *testing.T) {
	rivals, own := build(t, "../"), build(t, "../../../cmd/braid")
	etcd := serve(t, rivals, bench.ServerKind{Name: "etcd", Args: []string{"etcd-member"}}, 1)
	braid := serve(t, own, bench.ServerKind{Name: "raft", Args: []string{"serve"}}, 1)
	ctl := func(endpoint string, args ...string) string {
		args = append([]string{"ctl", "--endpoints", endpoint}, args...)
		out, err := exec.CommandContext(t.Context(), own, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	for prefix, way := range map[string][2]string{"out/": {etcd, braid}, "in/": {braid, etcd}} {
		ctl(way[0], "put", prefix+"before", "x")
		args := []string{"ctl", "--endpoints", way[0], mirrors, "--prefix", prefix, way[1]}
		mirror := exec.CommandContext(t.Context(), own, args...)
		require.NoError(t, mirror.Start())
		copied := func(key, value string) {
			is := func() bool { return ctl(way[1], "get", prefix+key) == value }
			require.Eventually(t, is, commandTime, 50*time.Millisecond)
		}
		copied("before", prefix+"before\nx\n")
		ctl(way[0], "put", prefix+"while", "y")
		copied("while", prefix+"while\ny\n")
		ctl(way[0], "del", prefix+"before")
		copied("before", "")
		require.NoError(t, mirror.Process.Kill())
		require.Error(t, mirror.Wait())
	}
}

// TestCommands runs commands of etcdctl on etcd and on braid, of three members each, and demands the same output.
func TestCommands(t *testing.T) {
	rivals, own := build(t, "../"), build(t, "../../../cmd/braid")
	for _, protocol := range strings.Split(*protocols, ",") {
		t.Run(protocol, func(t *testing.T) {
			flags := []string{"--bcrypt-cost", "4"}
			reference := bench.ServerKind{Name: "etcd", Args: []string{"etcd-member"}, Flags: flags}
			compared := bench.ServerKind{Name: protocol, Args: []string{"serve", "--protocol", protocol}, Flags: flags}
			var both [2]console
			for i, endpoint := range []string{serve(t, rivals, reference, 3), serve(t, own, compared, 3)} {
				both[i] = console{program: own, endpoint: endpoint, kept: map[string]string{
					"FILE": filepath.Join(t.TempDir(), "snapshot.db"),
				}}
			}
			ran := 0
			var differences []string
			for _, rows := range allCommands {
				if rows[0].measures && !*checks {
					continue
				}
				for i := range rows {
					ran++
					if difference := compareCommand(t, &both, &rows[i]); difference != "" {
						differences = append(differences, difference)
					}
				}
			}
			t.Logf("%d commands compared", ran)
			require.Empty(t, differences, "%s", strings.Join(differences, "\n"))
		})
	}
}

// compareCommand runs a command on both, and describes how the outputs differ; "": they do not.
func compareCommand(t *testing.T, both *[2]console, row *command) string {
	t.Helper()
	var out [2]string
	for i := range both {
		var err error
		if out[i], err = both[i].run(t.Context(), row); err != nil {
			return err.Error()
		}
	}
	if out[0] == out[1] {
		return ""
	}
	return fmt.Sprintf("%s\netcd:  %s\nbraid: %s\n", row.line, out[0], out[1])
}
