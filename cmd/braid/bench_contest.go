package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braidlog/braid/bench"
)

// contestFlags are the flags of loads on servers that the benchmark starts.
type contestFlags struct {
	bench.Contest
	protocol string
	peers    []string
	rivals   string
	data     string
	json     bool
}

func (f *contestFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.protocol, "protocol", "raft", "server to start: "+strings.Join(bench.ServerKinds(), ", "))
	fl.StringArrayVar(&f.peers, "peer", nil, "server to start and compare with; may be repeated")
	fl.IntVar(&f.Nodes, "nodes", 3, "members of a cluster that is started")
	fl.IntVar(&f.Rounds, "rounds", 0, "runs of each server that is started; the figures are medians (default 3 "+
		"with peers, else 1)")
	fl.StringVar(&f.data, "data", "", "parent of the directories of servers that are started (default: the "+
		"temporary directory)")
	registerRivals(fl, &f.rivals)
	fl.BoolVar(&f.json, "json", false, "print the result as JSON")
}

// complete names the servers and sets defaults that depend on other flags.
func (f *contestFlags) complete(given func(string) bool) error {
	f.Servers = []string{f.protocol}
	for _, p := range f.peers {
		if !slices.Contains(f.Servers, p) {
			f.Servers = append(f.Servers, p)
		}
	}
	return completeRounds(&f.Rounds, given("rounds"), len(f.Servers))
}

// open finds the programs of a contest and creates its directory. The returned function removes that.
func (f *contestFlags) open(cmd *cobra.Command, c *bench.Contest) (remove func(), err error) {
	if c.Executable, err = os.Executable(); err != nil {
		return nil, err
	}
	if c.Rivals, err = bench.FindRivals(f.rivals, c.Servers); err != nil {
		return nil, err
	}
	if c.Dir, remove, err = bench.DataDir(f.data); err != nil {
		return nil, err
	}
	if !f.json {
		fmt.Fprintf(cmd.ErrOrStderr(), "members' directories in %s (%s)\n", c.Dir, bench.Filesystem(c.Dir))
	}
	return remove, nil
}

// contestResult is the result of a load on several servers.
type contestResult interface {
	WriteText(io.Writer)
	// Violation returns the first violation of what the servers promise, "" if there is none.
	Violation() string
}

// runContest completes the flags, runs a load and prints its result. run returns no result if nothing was measured.
func runContest(cmd *cobra.Command, f *contestFlags, c *bench.Contest, show *func(bench.Progress),
	validate func() error, run func() (contestResult, error)) error {
	if err := f.complete(cmd.Flags().Changed); err != nil {
		return err
	}
	*c = f.Contest
	if err := validate(); err != nil {
		return usageError{err}
	}
	remove, err := f.open(cmd, c)
	if err != nil {
		return err
	}
	defer remove()
	progress := newProgress(f.json)
	*show = progress.show
	result, err := run()
	progress.clear()
	if result == nil {
		return err
	}
	if err := printResult(cmd.OutOrStdout(), f.json, result); err != nil {
		return err
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if v := result.Violation(); v != "" {
		return fmt.Errorf("the servers did not keep their promises: %s", v)
	}
	return nil
}

// printResult prints a result for programs or for people.
func printResult(w io.Writer, asJSON bool, result interface{ WriteText(io.Writer) }) error {
	if asJSON {
		return bench.WriteJSON(w, result)
	}
	result.WriteText(w)
	return nil
}
