package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pageLines are the lines of the code blocks of a page, with continued lines joined and comments cut off.
func pageLines(t *testing.T, file string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	block := false
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
		switch line, _, _ = strings.Cut(line, " # "); {
		case strings.HasPrefix(line, "```"):
			block = !block
		case block && line != "":
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	require.False(t, block, "%s: a code block does not end", file)
	return lines
}

// words splits a command line as a shell does, without expansions.
func words(line string) (words []string) {
	var word strings.Builder
	quote, begun := rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case quote == 0 && c == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// TestCommandsOfPagesExist: each command of braid in a code block of a page exists, and has the flags on the page.
// Other tests run the commands of some pages.
func TestCommandsOfPagesExist(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*/*.md")
	require.NoError(t, err)
	checked := 0
	for _, page := range append(pages, "../../README.md") {
		for _, line := range pageLines(t, page) {
			if args, ok := strings.CutPrefix(line, "braid "); ok {
				requireCommand(t, page, words(args))
				checked++
			}
		}
	}
	require.Greater(t, checked, 100)
}

// requireCommand requires that a command with these flags exists. "…" stands for anything.
func requireCommand(t *testing.T, page string, args []string) {
	t.Helper()
	if i := slices.IndexFunc(args, func(a string) bool { return a == "|" || a == ">" || a == "&" }); i >= 0 {
		args = args[:i]
	}
	args = slices.DeleteFunc(args, func(a string) bool { return a == "…" })
	root := newRoot()
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(args)
	require.NoError(t, err, "%s: %v", page, args)
	require.True(t, cmd != root, "%s: %v", page, args)
	if cmd.DisableFlagParsing {
		return
	}
	require.NoError(t, cmd.ParseFlags(rest), "%s: %v", page, args)
	if cmd.HasSubCommands() && !cmd.Runnable() {
		require.Empty(t, cmd.Flags().Args(), "%s: %v", page, args)
	}
}
