package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braidlog/braid"
)

func init() { commands = append(commands, newManCommand) }

// newManCommand returns the command with which a release makes its manual pages.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "write a manual page for each command into a directory", Hidden: true,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return writeManPages(cmd.Root(), args[0]) },
	}
}

// writeManPages writes NAME.1 for each command that the help shows. The directory must exist.
func writeManPages(cmd *cobra.Command, dir string) error {
	if cmd.Hidden || cmd.Name() == "help" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, manName(cmd)+".1"), []byte(manPage(cmd)), 0o600); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if err := writeManPages(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// manName returns the name of a command's page, as braid-ctl-put.
func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns a page in the macros of man(7). Texts keep their lines, because they have tables and commands;
// cobra's own writer would treat them as Markdown.
func manPage(cmd *cobra.Command) string {
	var page strings.Builder
	fmt.Fprintf(&page, ".TH %q 1 \"\" \"braid %s\" \"braid\"\n", strings.ToUpper(manName(cmd)), braid.Version)
	section := func(name, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(&page, ".SH %s\n.nf\n%s\n.fi\n", name, roff(text))
		}
	}
	cmd.InitDefaultHelpFlag()
	section("NAME", manName(cmd)+" - "+cmd.Short)
	section("SYNOPSIS", cmd.UseLine())
	section("DESCRIPTION", cmd.Long)
	section("OPTIONS", flagUsages(cmd.NonInheritedFlags()))
	section("OPTIONS OF ALL ITS COMMANDS", flagUsages(cmd.InheritedFlags()))
	section("EXAMPLES", cmd.Example)
	var also []string
	if cmd.HasParent() {
		also = append(also, manName(cmd.Parent())+"(1)")
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			also = append(also, manName(sub)+"(1)")
		}
	}
	section("SEE ALSO", strings.Join(also, "\n"))
	return page.String()
}

func flagUsages(flags *pflag.FlagSet) string {
	const width = 100
	return flags.FlagUsagesWrapped(width)
}

// roff escapes a text: characters with a meaning, and lines that would be requests.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
