package lint

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const toyPage, toyFolder = "../../docs/internals/writing-a-protocol.md", "internal/protocol/slotpaxos"

// TestTheToyIsNamedWhereItsPageSays: the files outside its folder that name the toy protocol are those that its page
// lists.
func TestTheToyIsNamedWhereItsPageSays(t *testing.T) {
	var have []string
	for _, f := range source(t).files {
		if !f.isTest() && !f.in(toyFolder) && namesToy(f) {
			have = append(have, f.path)
		}
	}
	page, err := os.ReadFile(toyPage)
	require.NoError(t, err)
	_, list, found := strings.Cut(string(page), "Outside its folder and outside tests,")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n\n")
	var said []string
	for _, m := range named.FindAllStringSubmatch(list, -1) {
		said = append(said, m[1])
	}
	slices.Sort(said)
	slices.Sort(have)
	require.Equal(t, have, said)
}

// namesToy reports whether a text in a Go file, or an import, names the protocol.
func namesToy(f *file) (names bool) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		names = names || ok && lit.Kind == token.STRING && strings.Contains(lit.Value, "slotpaxos")
		return true
	})
	return names
}

// bare matches a file in backquotes, without its folder.
var bare = regexp.MustCompile("`([a-z_]+\\.(?:go|txt))`")

// TestTheToyHasTheFilesThatItsPageNames in its folder.
func TestTheToyHasTheFilesThatItsPageNames(t *testing.T) {
	page, err := os.ReadFile(toyPage)
	require.NoError(t, err)
	for _, m := range bare.FindAllStringSubmatch(string(page), -1) {
		folder := "../../" + toyFolder + "/"
		if strings.HasSuffix(m[1], ".txt") {
			folder += "testdata/"
		}
		if m[1] == "protocols.go" { // it is in the root
			folder = "../../"
		}
		require.FileExists(t, folder+m[1])
	}
}
