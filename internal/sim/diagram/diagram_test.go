package diagram

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// TestDraw plays the scripts in testdata: a trace, and its diagram. With keep there are only the rows of lines that
// match.
func TestDraw(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, c *datadriven.TestData) string {
			require.Equal(t, "draw", c.Cmd)
			var d Diagram
			if c.HasArg("keep") {
				var keep string
				c.ScanArgs(t, "keep", &keep)
				d.Keep = regexp.MustCompile(keep).MatchString
			}
			for _, part := range strings.SplitAfter(c.Input, " ") { // lines come in parts
				_, err := d.Write([]byte(part))
				require.NoError(t, err)
			}
			var out strings.Builder
			require.NoError(t, d.Draw(&out))
			text := strings.TrimPrefix(out.String(), cut(strings.SplitN(c.Input, "\n", 2)[0], width)+"\n"+legend)
			for _, line := range strings.Split(text, "\n") {
				if !strings.HasPrefix(line, "VIOLATION") {
					require.LessOrEqual(t, utf8.RuneCountInString(line), width, line)
				}
			}
			return text
		})
	})
}

type full struct{}

var errFull = errors.New("no space")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestDrawReturnsTheErrorOfTheWriter(t *testing.T) {
	var d Diagram
	_, err := d.Write([]byte("seed 1: 3 nodes\n"))
	require.NoError(t, err)
	require.ErrorIs(t, d.Draw(full{}), errFull)
}
