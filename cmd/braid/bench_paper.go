package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/paper"
)

// gcPercent is the growth of the heap between garbage collections while experiments run. It is the same as for braid
// bench log, so that idle clusters, which are on the same heap, cost little.
const gcPercent = 400

// benchPaperFlags are the flags of braid bench paper.
type benchPaperFlags struct {
	out    string
	data   string
	quick  bool
	rounds int
	json   bool
}

func newBenchPaperCommand() *cobra.Command {
	var f benchPaperFlags
	cmd := &cobra.Command{
		Use:   "paper NAME... | all | list",
		Short: "repeat a paper's experiment: table, plots, JSON, next to the paper's figures",
		Long: "paper runs experiments of the papers that braid implements, on clusters in this process with\n" +
			"real fsyncs and loopback TCP, and writes a report with the paper's figures next to\n" +
			"the measured ones:\n\n" + listExperiments() + `
Every round runs all contestants; the figures are medians with their range. Ctrl-C ends an
experiment early and keeps the figures so far.

The directory gets index.html (with the results of earlier runs in it), and for each
experiment NAME.json, NAME.csv and NAME.svg; report.json is what --json prints: one object
for one experiment, an array for several.`,
		Example: `  braid bench paper list
  braid bench paper raft-batching --quick --out report
  braid bench paper all --out report`,
		ValidArgs: experimentNames(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("which experiment? There are %s, and all", strings.Join(experimentNames(), ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.out, "out", "", "directory of the report, required; made if missing")
	fl.StringVar(&f.data, "data", "", "parent of the members' directories, on a disk (default: the temporary directory)")
	fl.BoolVar(&f.quick, "quick", false, "fewer points and rounds: each experiment within a minute, fit within 20")
	fl.IntVar(&f.rounds, "rounds", 0, "runs of each contestant (default: the experiment's, at least 3 unless --quick)")
	fl.BoolVar(&f.json, "json", false, "print the result as JSON")
	return cmd
}

// paperMember is the name of the command that runs a member of an experiment's cluster.
const paperMember = "paper-member"

// newPaperMemberCommand returns the command for experiments whose members are separate processes. It is not for
// users.
func newPaperMemberCommand() *cobra.Command {
	return &cobra.Command{
		Use: paperMember, Short: "a member of an experiment's cluster, which braid bench paper starts", Hidden: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(gcPercent)
			}
			return paper.ServeMember(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

func experimentNames() []string {
	var names []string
	for _, e := range paper.List() {
		names = append(names, e.Name)
	}
	return names
}

func listExperiments() string {
	var b strings.Builder
	for _, e := range paper.List() {
		fmt.Fprintf(&b, "  %-20s %s\n", e.Name, e.Short)
	}
	return b.String()
}

// check refuses invalid flags before anything is done.
func (f *benchPaperFlags) check(cmd *cobra.Command) error {
	switch {
	case f.out == "":
		return usagef("--out: say which directory the report goes to")
	case cmd.Flags().Changed("rounds") && f.rounds < 1:
		return usagef("--rounds %d: must be at least 1", f.rounds)
	}
	return nil
}

func (f *benchPaperFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] == "list" {
		_, err := io.WriteString(cmd.OutOrStdout(), listExperiments())
		return err
	}
	experiments, err := paper.Select(args...)
	if err != nil {
		return usageError{err}
	}
	if err := f.check(cmd); err != nil {
		return err
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil { // before minutes of measuring
		return fmt.Errorf("--out: %w", err)
	}
	dir, remove, err := bench.DataDir(f.data)
	if err != nil {
		return err
	}
	defer remove()
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	}
	results, err := f.measure(cmd.Context(), experiments, dir, args)
	if len(results) == 0 {
		return err
	}
	if werr := paper.WriteReport(f.out, results); werr != nil {
		return errors.Join(werr, err)
	}
	if perr := f.print(cmd, results); perr != nil {
		return perr
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return judge(results)
}

// measure runs experiments one after the other; results before an error count.
func (f *benchPaperFlags) measure(ctx context.Context, experiments []*paper.Experiment, dir string,
	args []string) ([]*paper.Result, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	member := []string{executable, "bench", paperMember}
	p := newProgress(f.json)
	defer p.clear()
	var results []*paper.Result
	for _, e := range experiments {
		r, err := paper.Run(ctx, e, paper.Config{Dir: dir, Quick: f.quick, Rounds: f.rounds, Command: f.command(args),
			Member: member, Progress: p.experiment})
		if r != nil {
			results = append(results, r)
		}
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// command returns the command line that makes the same report again.
func (f *benchPaperFlags) command(args []string) string {
	c := "braid bench paper " + strings.Join(args, " ") + " --out " + f.out
	if f.quick {
		c += " --quick"
	}
	if f.rounds > 0 {
		c += fmt.Sprintf(" --rounds %d", f.rounds)
	}
	return c
}

func (f *benchPaperFlags) print(cmd *cobra.Command, results []*paper.Result) error {
	if f.json {
		return paper.WriteJSON(cmd.OutOrStdout(), results)
	}
	for _, r := range results {
		r.WriteText(cmd.OutOrStdout())
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "report: %s\n", filepath.Join(f.out, "index.html"))
	return err
}

// judge fails if the members of a cluster did not agree: then no figure counts. A claim
// that does not hold is a result like any other.
func judge(results []*paper.Result) error {
	for _, r := range results {
		if v := r.Violations(); len(v) > 0 {
			return fmt.Errorf("%s: %s", r.Experiment, strings.Join(v, "; "))
		}
	}
	return nil
}
