package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Run is the outcome of one run on one store.
type Run struct {
	Kills         int            `json:"kills"`
	KillsOfLeader int            `json:"kills_of_leader"`
	Created       int            `json:"created"`
	Writes        int            `json:"writes"` // that were acknowledged
	WritesPS      float64        `json:"writes_ps"`
	PauseS        float64        `json:"longest_pause_s"` // between two acknowledgements
	Lost          []string       `json:"lost,omitempty"`
	Failures      map[string]int `json:"failures,omitempty"` // requests that failed, by HTTP code
	// Samples are texts of failures, one for each code.
	Samples     map[string]string `json:"failure_samples,omitempty"`
	Events      int               `json:"events"`
	WrongEvents []string          `json:"wrong_events,omitempty"`
	Watches     int               `json:"watches"` // that were opened, one after the other
	Relists     int               `json:"relists"` // of them, after kube-apiserver had dropped events
	Work        *Work             `json:"work"`
	// LeaderChanges and ManagerRestarts count how often the controller manager lost its election, and ended.
	LeaderChanges   int    `json:"leader_changes"`
	ManagerRestarts int    `json:"manager_restarts"`
	Load            string `json:"load_average,omitempty"` // of the machine at the end of the load
}

// addFailures adds counts of failures.
func (r *Run) addFailures(f *failures) {
	if r.Failures == nil {
		r.Failures, r.Samples = map[string]int{}, map[string]string{}
	}
	for kind, n := range f.counts {
		r.Failures[kind] += n
		r.Samples[kind] = cmp.Or(r.Samples[kind], f.sample[kind])
	}
}

// faults describes each violation, and work that is not done.
func (r *Run) faults() (all []string) {
	for _, l := range r.Lost {
		all = append(all, "lost: "+l)
	}
	for _, e := range r.WrongEvents {
		all = append(all, "wrong event: "+e)
	}
	if !r.Work.done() {
		all = append(all, fmt.Sprintf("the controller manager has not finished: %+v", *r.Work))
	}
	return all
}

func (r *Run) String() string {
	return fmt.Sprintf("%d writes, longest pause %.1f s, %d kills, %d faults, load average %s", r.Writes, r.PauseS,
		r.Kills, len(r.faults()), r.Load)
}

// Results are the outcome of all runs.
type Results struct {
	Members   int               `json:"members"`
	DurationS float64           `json:"duration_s"`
	DownS     float64           `json:"down_s"`
	PauseS    float64           `json:"pause_s"`
	Workers   int               `json:"workers"`
	Cores     int               `json:"cores"`
	Date      string            `json:"date"`
	Stores    []string          `json:"stores"` // those with a run
	Runs      map[string][]*Run `json:"runs"`   // by store
}

func newResults(c *contest, runs [][]*Run) *Results {
	r := &Results{
		Members: c.Nodes, DurationS: c.duration.Seconds(), DownS: c.down.Seconds(), PauseS: c.pause.Seconds(),
		Workers: c.workers, Cores: runtime.NumCPU(), Date: time.Now().UTC().Format(time.DateOnly),
		Runs: map[string][]*Run{},
	}
	for i, of := range runs {
		if len(of) > 0 {
			r.Stores, r.Runs[c.Servers[i]] = append(r.Stores, c.Servers[i]), of
		}
	}
	return r
}

// faults describes those of each run.
func (r *Results) faults() (all []string) {
	for _, store := range r.Stores {
		for i, run := range r.Runs[store] {
			for _, f := range run.faults() {
				all = append(all, fmt.Sprintf("%s, round %d: %s", store, i+1, f))
			}
		}
	}
	return all
}

// sum adds a figure of the runs.
func sum(runs []*Run, of func(*Run) int) string {
	total := 0
	for _, r := range runs {
		total += of(r)
	}
	return fmt.Sprint(total)
}

// each lists a figure of the runs.
func each(runs []*Run, format string, of func(*Run) float64) string {
	var all []string
	for _, r := range runs {
		all = append(all, fmt.Sprintf(format, of(r)))
	}
	return strings.Join(all, " / ")
}

// otherFailures lists failures except HTTP 500.
func otherFailures(runs []*Run) string {
	counts := map[string]int{}
	for _, r := range runs {
		for kind, n := range r.Failures {
			counts[kind] += n
		}
	}
	delete(counts, "500")
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s: %d", kind, counts[kind]))
	}
	return cmp.Or(strings.Join(all, ", "), "0")
}

// of returns "a of b", both added.
func of(runs []*Run, a, b func(*Run) int) string { return sum(runs, a) + " of " + sum(runs, b) }

// rows are the lines of the table. Counts are added over the rounds, and times are listed.
var rows = []struct {
	name  string
	value func([]*Run) string
}{
	{"rounds", func(r []*Run) string { return fmt.Sprint(len(r)) }},
	{"kills, of the leader", func(r []*Run) string {
		return sum(r, func(r *Run) int { return r.Kills }) + ", " + sum(r, func(r *Run) int { return r.KillsOfLeader })
	}},
	{"objects created", func(r []*Run) string { return sum(r, func(r *Run) int { return r.Created }) }},
	{"writes acknowledged", func(r []*Run) string { return sum(r, func(r *Run) int { return r.Writes }) }},
	{"writes/s", func(r []*Run) string { return each(r, "%.1f", func(r *Run) float64 { return r.WritesPS }) }},
	{"objects lost or wrong", func(r []*Run) string { return sum(r, func(r *Run) int { return len(r.Lost) }) }},
	{"longest pause of writes, s", func(r []*Run) string {
		return each(r, "%.1f", func(r *Run) float64 { return r.PauseS })
	}},
	{"HTTP 500", func(r []*Run) string { return sum(r, func(r *Run) int { return r.Failures["500"] }) }},
	{"other failed requests", otherFailures},
	{"watch events", func(r []*Run) string { return sum(r, func(r *Run) int { return r.Events }) }},
	{"wrong watch events", func(r []*Run) string { return sum(r, func(r *Run) int { return len(r.WrongEvents) }) }},
	{"watches, lists instead of events", func(r []*Run) string {
		return sum(r, func(r *Run) int { return r.Watches }) + ", " + sum(r, func(r *Run) int { return r.Relists })
	}},
	{"Pods of Deployments that were scaled", func(r []*Run) string {
		return of(r, func(r *Run) int { return r.Work.Pods }, func(r *Run) int { return r.Work.PodsWanted })
	}},
	{"dependents of deleted Deployments left", func(r []*Run) string {
		return of(r, func(r *Run) int { return r.Work.DependentsLeft }, func(r *Run) int { return r.Work.Dependents })
	}},
	{"deleted namespaces left", func(r []*Run) string {
		return of(r, func(r *Run) int { return r.Work.NamespacesLeft }, func(r *Run) int { return r.Work.Namespaces })
	}},
	{"all that done, s after the load", func(r []*Run) string {
		return each(r, "%.1f", func(r *Run) float64 { return r.Work.SettledS })
	}},
	{"elections of the controller manager lost", func(r []*Run) string {
		return sum(r, func(r *Run) int { return max(r.LeaderChanges, r.ManagerRestarts) })
	}},
	{"load average", func(r []*Run) string {
		var all []string
		for _, run := range r {
			all = append(all, run.Load)
		}
		return strings.Join(all, " / ")
	}},
}

// WriteText writes the table, and all faults.
func (r *Results) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%d members, %.0f s of load by %d clients in each round, a member killed %.0f s after the one "+
		"before returned, and started again %.0f s later; %d cores, %s\n", r.Members, r.DurationS, r.Workers, r.PauseS,
		r.DownS, r.Cores, r.Date)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\t%s\n", strings.Join(r.Stores, "\t"))
	for _, row := range rows {
		fmt.Fprint(table, row.name)
		for _, store := range r.Stores {
			fmt.Fprint(table, "\t"+row.value(r.Runs[store]))
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
	for _, f := range r.faults() {
		fmt.Fprintln(w, f)
	}
}

// loadAverage is that of the machine over the last minute, empty where it is not known.
func loadAverage() string {
	said, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	minute, _, _ := strings.Cut(string(said), " ")
	return minute
}
