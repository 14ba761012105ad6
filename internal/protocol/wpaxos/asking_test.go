package wpaxos

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// TestAsking runs the scripts under testdata:
//
//	begin owner=ID voters=N stealing=POLICY [quorums=ZONES]   the owner begins to count
//	ask                                                       members ask one after the other; 2*10: ten times at once
func TestAsking(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var a asking
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "begin":
				return beginAsking(t, d, &a)
			case "ask":
				var out strings.Builder
				for line := range strings.Lines(d.Input) {
					fmt.Fprintf(&out, "%s\n", askAll(t, &a, line))
				}
				return out.String()
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}

func beginAsking(t *testing.T, d *datadriven.TestData, a *asking) string {
	var n, owner int
	var text, zones string
	d.ScanArgs(t, "voters", &n)
	d.ScanArgs(t, "owner", &owner)
	d.ScanArgs(t, "stealing", &text)
	d.MaybeScanArgs(t, "quorums", &zones)
	how, err := ParseStealing(text)
	require.NoError(t, err)
	quorums, err := quorum.Parse(zones)
	require.NoError(t, err)
	var voters []protocol.MemberID
	for i := range n {
		voters = append(voters, protocol.MemberID(i+1))
	}
	*a = asking{how: how}
	a.begin(protocol.MemberID(owner), voters, quorums)
	require.NoError(t, a.check())
	return "ok\n"
}

// askAll returns the first decision in a line, and how many questions it took.
func askAll(t *testing.T, a *asking, line string) string {
	took := 0
	for word := range strings.FieldsSeq(line) {
		id, times, many := strings.Cut(word, "*")
		n := 1
		if many {
			var err error
			n, err = strconv.Atoi(times)
			require.NoError(t, err)
		}
		member, err := strconv.Atoi(id)
		require.NoError(t, err)
		took++
		to := a.ask(protocol.MemberID(member), n)
		require.NoError(t, a.check())
		if to != 0 {
			return fmt.Sprintf("to %s after %d", to, took)
		}
	}
	return "stays"
}

func TestStealingInWords(t *testing.T) {
	for _, text := range []string{"never", "majority:64", "consecutive:3", "average:16"} {
		s, err := ParseStealing(text)
		require.NoError(t, err)
		require.Equal(t, text, s.String())
	}
	for _, text := range []string{"majority", "majority:0", "never:3", "most:3", "average:x", "consecutive:99999999"} {
		_, err := Settings.Complete(setting.MustParse("stealing=" + text))
		var wrong *setting.Error
		require.ErrorAs(t, err, &wrong, text)
	}
}
