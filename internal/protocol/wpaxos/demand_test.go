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

// TestDemand runs the scripts under testdata:
//
//	begin owner=ID voters=N stealing=POLICY [quorums=ZONES] [zones=(…)]   the owner begins to count
//	ask                                                       members send requests in turn; 2*10: ten at once
func TestDemand(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var a demand
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "begin":
				return beginDemand(t, d, &a)
			case "ask":
				var out strings.Builder
				for line := range strings.Lines(d.Input) {
					fmt.Fprintf(&out, "%s\n", addAll(t, &a, line))
				}
				return out.String()
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}

func beginDemand(t *testing.T, d *datadriven.TestData, a *demand) string {
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
	var voters quorum.Voters
	for i := range n {
		voters.IDs = append(voters.IDs, protocol.MemberID(i+1))
	}
	for _, arg := range d.CmdArgs {
		if arg.Key == "zones" {
			voters.Zones = arg.Vals
		}
	}
	*a = demand{how: how}
	a.begin(protocol.MemberID(owner), voters, quorums)
	require.NoError(t, a.check())
	return "ok\n"
}

// addAll returns the first decision in a line, and the number of requests that it took.
func addAll(t *testing.T, a *demand, line string) string {
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
		to := a.add(protocol.MemberID(member), n)
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
