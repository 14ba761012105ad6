package history

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testdoc"
)

var rewrite = flag.Bool("rewrite", false, "write what tests make of the code into documents")

const operations = "../../../docs/using/operations.md"

func TestColumnsPage(t *testing.T) {
	var out strings.Builder
	out.WriteString("\n| column | |\n|---|---|\n")
	for _, c := range columns {
		fmt.Fprintf(&out, "| `%s` | %s |\n", c.name, c.about)
	}
	testdoc.Part(t, operations, out.String(), *rewrite)
}

func TestKindsPage(t *testing.T) {
	var out strings.Builder
	out.WriteString("\n| event | in words; parts in brackets may be missing |\n|---|---|\n")
	for _, k := range Kinds {
		fmt.Fprintf(&out, "| `%s` | %s |\n", k.Name, k.Text)
	}
	testdoc.Part(t, operations, out.String(), *rewrite)
}

// used finds the kinds of events in source code: in the attribute, and where server makes lines.
var used = regexp.MustCompile(`(?:"event"|EventKey), "([a-z-]+)"|slog\.Level\w+, "([a-z-]+)"|event: +"([a-z-]+)"|` +
	`\.event, l\.message = "([a-z-]+)"`)

// TestKindsAreThoseOfTheCode: each line of the log that is an event has a kind of the list, and each kind has a line.
func TestKindsAreThoseOfTheCode(t *testing.T) {
	found := map[string]string{}
	for _, root := range []string{"server", "internal/replica", "internal/transport"} {
		err := filepath.WalkDir(filepath.Join("../../..", root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range used.FindAllStringSubmatch(string(text), -1) {
				found[strings.Join(m[1:], "")] = path
			}
			return err
		})
		require.NoError(t, err)
	}
	for _, k := range Kinds {
		require.Contains(t, found, k.Name, "no line has this kind")
		delete(found, k.Name)
	}
	require.Empty(t, found, "these kinds are not in the list")
}
