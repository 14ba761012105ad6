package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/launch"
)

// Exit codes. `braid ctl` and `braid utl` keep those of etcdctl and etcdutl instead.
const (
	exitOK     = 0
	exitFailed = 1 // the command failed; the reason is on standard error
	exitUsage  = 2 // unknown command or flag, or invalid values; nothing was done
	// exitExpelled: the cluster continues without this member, or knows another one in its place; a restart does not
	// help.
	exitExpelled = launch.ExitFinal
)

// commands are the constructors of commands; every file with one adds it in its init function.
var commands []func() *cobra.Command

// usageError is an invalid command line. Nothing was done.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run runs the command line and returns the exit code. The first SIGINT or SIGTERM ends the
// command's context; a second one ends the process.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	// etcdctl accepts shortened names of commands, braid's own commands do not.
	cobra.EnablePrefixMatching = len(args) > 0 && (args[0] == "ctl" || args[0] == "utl")
	if cobra.EnablePrefixMatching {
		stop() // they handle signals themselves
	}
	root := newRoot()
	root.SetArgs(twoDashes(root, args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.InitDefaultCompletionCmd()
	refuseUnknown(root)
	running := markRunning(root)
	cmd, err := root.ExecuteContextC(ctx)
	return report(cmd, err, *running, stderr)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "braid",
		Short: "A replicated log, and an etcd-compatible key-value server on top of it",
		Long: `braid is a replicated log, and an etcd-compatible key-value server on top of it.

Exit codes: 0 success; 1 failure, with the reason on standard error; 2 usage error, nothing
was done; 3 the cluster continues without this member. "braid ctl" and "braid utl" have the
exit codes of etcdctl and etcdutl.`,
		Example: `  braid up                          # a cluster of three on this machine
  braid ctl put greeting hello      # etcdctl, built in
  braid ctl get greeting
  braid status                      # leaders, lag`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Version = braid.Version
	root.SetVersionTemplate("braid {{.Version}}\n")
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(flagError)
	for _, make := range commands {
		root.AddCommand(make())
	}
	return root
}

// markRunning makes every command record that it began: errors before that are usage errors.
func markRunning(cmd *cobra.Command) *bool {
	running := new(bool)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if inner := c.RunE; inner != nil {
			c.RunE = func(c *cobra.Command, args []string) error {
				*running = true
				return inner(c, args)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(cmd)
	return running
}

// report prints the error and chooses the exit code.
func report(cmd *cobra.Command, err error, running bool, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	path := "braid"
	if cmd != nil {
		path = cmd.CommandPath()
	}
	text := strings.TrimRight(explain(err), "\n")
	for _, word := range strings.Fields(path) {
		text = strings.TrimPrefix(text, word+": ") // the library's errors begin so, too
	}
	fmt.Fprintf(stderr, "%s: %s\n", path, text)
	switch {
	case strings.HasPrefix(path, "braid ctl") || strings.HasPrefix(path, "braid utl"):
		return exitFailed // as etcdctl and etcdutl do
	case errors.As(err, new(usageError)) || !running:
		fmt.Fprintf(stderr, "See \"%s --help\".\n", path)
		return exitUsage
	case errors.As(err, new(*braid.ExpelledError)), errors.As(err, new(*braid.ForgottenError)):
		return exitExpelled
	}
	return exitFailed
}

// group is a command that only holds others.
func group(use, short string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, RunE: runGroup}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(subcommands...)
	return cmd
}

// runGroup runs a command that only holds others.
func runGroup(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	suggestion := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		nearest := slices.MinFunc(near, func(a, b string) int {
			return cmp.Compare(distance(args[0], a), distance(args[0], b))
		})
		suggestion = fmt.Sprintf("; did you mean %q?", nearest)
	}
	return usagef("unknown command %q%s", args[0], suggestion)
}
