package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// TestManPages: each command that the help shows has a page, with its flags, and all pages that it refers to exist.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	_, stderr, code := call("man", dir)
	require.Zero(t, code, stderr)
	pages := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.1"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		pages[strings.TrimSuffix(filepath.Base(file), ".1")] = string(text)
	}
	root := newRoot()
	root.InitDefaultCompletionCmd()
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		page, have := pages[manName(c)]
		if c.Hidden || c.Name() == "help" {
			require.False(t, have, c.CommandPath())
			return
		}
		require.Contains(t, page, ".SH NAME\n.nf\n"+roff(manName(c))+` \- `, c.CommandPath())
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	require.Contains(t, pages["braid-serve"], roff("--initial-cluster"))
	require.Contains(t, pages["braid-bench-log"], "EXAMPLES")
	require.Contains(t, pages["braid-ctl"], roff("braid-ctl-put(1)"))
	require.NotContains(t, pages["braid"], roff("braid-man(1)"))
	for name, page := range pages {
		_, also, _ := strings.Cut(page, ".SH SEE ALSO\n.nf\n")
		for _, line := range strings.Split(strings.TrimSuffix(also, ".fi\n"), "\n") {
			if other := strings.TrimSuffix(strings.ReplaceAll(line, `\-`, "-"), "(1)"); other != "" {
				require.Contains(t, pages, other, name)
			}
		}
	}
}

func TestRoff(t *testing.T) {
	require.Equal(t, `a \-\-flag\e`+"\n"+`\&.nothing`+"\n"+`\&'quoted`, roff("a --flag\\\n.nothing\n'quoted"))
}
