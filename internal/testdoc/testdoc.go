// Package testdoc compares parts of documents with what tests make of the code.
//
// A part stands between two comments. The first ends with the test that writes it:
//
//	<!-- From here: go test ./internal/settings -run TestSettingsPage -rewrite -->
//	…
//	<!-- To here. -->
//
// May import: nothing of braid.
package testdoc

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const end = "\n<!-- To here. -->"

// Part demands that the part of a document that this test writes is as given, or writes it. The name of a test stands
// once in a document.
func Part(t *testing.T, file, want string, rewrite bool) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	begin := " -run " + t.Name() + " -rewrite -->\n"
	before, rest, ok := strings.Cut(string(data), begin)
	has, after, ends := strings.Cut(rest, end)
	require.True(t, ok && ends, "%s has no part of %s", file, t.Name())
	require.NotContains(t, has, "<!-- From here", "the part of %s has no end of its own", t.Name())
	if rewrite {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+want+end+after), 0o644))
		return
	}
	require.Equal(t, want, has, "run it with -rewrite")
}
