package bench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// BackupFigures are the figures of a backup and of restoring it.
type BackupFigures struct {
	BackupS float64 `json:"backup_s"`
	// BackupMiB is the peak of the memory of the process that makes the backup, and MemberMiB that of the member
	// meanwhile. Pages of files that are mapped into memory count.
	BackupMiB float64 `json:"backup_memory_mib"`
	MemberMiB float64 `json:"member_memory_mib"`
	FileMiB   float64 `json:"file_mib"` // of the backup
	// RestoreS and RestoreMiB are the time and the peak of the memory of preparing a member's data directory.
	RestoreS   float64 `json:"restore_s"`
	RestoreMiB float64 `json:"restore_memory_mib"`
}

func (f *BackupFigures) figures() []*float64 {
	return []*float64{&f.BackupS, &f.BackupMiB, &f.MemberMiB, &f.FileMiB, &f.RestoreS, &f.RestoreMiB}
}

// BackupResult is the outcome of one kind of server.
type BackupResult struct {
	Protocol   string        `json:"protocol"`
	Nodes      int           `json:"nodes"`
	Keys       float64       `json:"keys"`
	First      BackupFigures `json:"first"`
	Again      BackupFigures `json:"again"` // after some keys were changed
	CPUShares                // of the whole run
	Violations []string      `json:"violations,omitempty"`
}

// figures are the figures whose median counts.
func (r *BackupResult) figures() []*float64 {
	return slices.Concat([]*float64{&r.Keys, &r.StolenPercent, &r.OthersPercent}, r.First.figures(), r.Again.figures())
}

func (r *BackupResult) violated() (server string, violations []string) {
	return r.Protocol, r.Violations
}

// BackupContest is the outcome of a BackupConfig.
type BackupContest struct {
	MiB    int    `json:"mib"`
	Sizes  string `json:"sizes"`
	Change int    `json:"change_percent"`
	serverResults[*BackupResult]
}

// newBackupContest returns the result of some runs, nil if there are none.
func newBackupContest(c *BackupConfig, runs [][]*BackupResult) *BackupContest {
	out := &BackupContest{MiB: c.MiB, Sizes: c.Sizes.String(), Change: c.Change,
		serverResults: newServerResults(&c.Contest, runs, medianBackupResult)}
	if len(out.Results) == 0 {
		return nil
	}
	return out
}

func medianBackupResult(runs []*BackupResult) *BackupResult {
	m := *runs[0]
	m.Violations = nil
	setMedians(&m, runs, (*BackupResult).figures)
	for _, r := range runs {
		m.Violations = append(m.Violations, r.Violations...)
	}
	return &m
}

// WriteText writes the result as a table.
func (c *BackupContest) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%d members, %d MiB in %s keys with values of %s, medians of %d rounds on %d cores, %s\n",
		c.Results[0].Nodes, c.MiB, number(c.Results[0].Keys), c.Sizes, c.Rounds, c.Machine.Cores, c.Machine.Filesystem)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\t\tbackup s\tmemory MiB\tof the member\tfile MiB\trestore s\tmemory MiB\t")
	for _, r := range c.Results {
		for _, row := range []struct {
			name string
			of   BackupFigures
		}{{"all", r.First}, {fmt.Sprintf("%d %% changed", c.Change), r.Again}} {
			fmt.Fprintf(tw, "%s\t%s\t", r.Protocol, row.name)
			for _, f := range row.of.figures() {
				fmt.Fprintf(tw, "%s\t", number(*f))
			}
			fmt.Fprintln(tw)
		}
	}
	_ = tw.Flush()
	for _, r := range c.Results {
		writeWarnings(w, r.Protocol, r.Warning())
		writeVerified(w, r.Protocol, "the restored keys are the member's", r.Violations)
	}
}
