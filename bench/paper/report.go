package paper

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// WriteReport writes the results of some experiments into a directory: for each NAME.json, NAME.csv and its plots
// NAME.svg, NAME-2.svg …; report.json, with the output of WriteJSON; and index.html, which also shows experiments
// that are in the directory already.
func WriteReport(dir string, results []*Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	for _, r := range results {
		if err := r.write(dir); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	if err := writeFile(filepath.Join(dir, "report.json"), func(w io.Writer) error {
		return WriteJSON(w, results)
	}); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	all, err := withEarlier(dir, results)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := writeFile(filepath.Join(dir, "index.html"), func(w io.Writer) error {
		return writePage(w, all)
	}); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// WriteJSON writes one result as an object, several as an array of such objects.
func WriteJSON(w io.Writer, results []*Result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if len(results) == 1 {
		return e.Encode(results[0])
	}
	return e.Encode(results)
}

// write writes the files of one experiment.
func (r *Result) write(dir string) error {
	name := filepath.Join(dir, r.Experiment)
	errs := []error{
		writeFile(name+".json", func(w io.Writer) error { return WriteJSON(w, []*Result{r}) }),
		writeFile(name+".csv", r.writeCSV),
	}
	for i := range r.e.Plots {
		file := name + ".svg"
		if i > 0 {
			file = fmt.Sprintf("%s-%d.svg", name, i+1)
		}
		errs = append(errs, writeFile(file, func(w io.Writer) error {
			_, err := io.WriteString(w, r.e.Plots[i].SVG(r))
			return err
		}))
	}
	return errors.Join(errs...)
}

// writeFile writes a file atomically.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".report-")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// writeCSV writes a row for each figure of each point.
func (r *Result) writeCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"experiment", "series", "paper", "x_name", "x", "figure", "median", "min", "max", "runs", "model"}}
	num := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	for _, s := range r.Series {
		for _, p := range s.Points {
			for _, m := range slices.Sorted(maps.Keys(p.Figures)) {
				f := p.Figures[m]
				rows = append(rows, []string{
					r.Experiment, s.Name, strconv.FormatBool(s.Paper), s.X, num(p.X), string(m),
					num(f.Median), num(f.Min), num(f.Max), strconv.Itoa(p.Count), strconv.FormatBool(s.Model),
				})
			}
		}
	}
	return c.WriteAll(rows)
}

// withEarlier adds the results of earlier runs in a directory, and sorts all.
func withEarlier(dir string, results []*Result) ([]*Result, error) {
	var all []*Result
	for _, e := range Experiments() {
		i := slices.IndexFunc(results, func(r *Result) bool { return r.Experiment == e.Name })
		if i >= 0 {
			all = append(all, results[i])
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		r := &Result{e: e}
		if err == nil {
			err = json.Unmarshal(data, r)
		}
		if err != nil {
			return nil, fmt.Errorf("the result of an earlier run: %w", err)
		}
		all = append(all, r)
	}
	for _, r := range results {
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all, nil
}

// WriteText writes a result as text.
func (r *Result) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n  on %s\n", r.Experiment, r.e.Short, r.Machine.Where())
	for i := range r.Claims {
		c := &r.Claims[i]
		fmt.Fprintf(w, "  %-13s %s (paper: %s)  %s\n", r.verdict(c), withUnit(c.Measured, c.Unit),
			withUnit(c.Paper, cmp.Or(c.PaperUnit, c.Unit)), c.Claim+c.modelNote())
	}
	if why := r.Unjudged(); why != "" {
		fmt.Fprintf(w, "  no verdicts: %s\n", why)
	}
	r.writeDay(w)
	for _, n := range r.Machine.Notes {
		fmt.Fprintf(w, "  note: %s\n", n)
	}
}

// modelNote says how far the model is off that computed the figure.
func (j *Judged) modelNote() string {
	if j.ModelOff == nil {
		return ""
	}
	return fmt.Sprintf("; the model is off by %s ×", number(*j.ModelOff))
}

// withUnit writes a figure that may be missing.
func withUnit(v *float64, unit string) string {
	if v == nil {
		return "–"
	}
	return strings.TrimSpace(number(*v) + " " + unit)
}

// Violations returns the violations that invalidate an experiment's figures; empty if they are valid.
func (r *Result) Violations() []string {
	return slices.DeleteFunc(slices.Clone(r.Machine.Notes), func(n string) bool {
		return !strings.HasPrefix(n, violation)
	})
}
