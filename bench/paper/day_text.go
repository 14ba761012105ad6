package paper

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// writeDay writes the throughput of each contestant in each phase of a day, the phases, and the changes with their
// reasons. Of other results it writes nothing.
func (r *Result) writeDay(w io.Writer) {
	if len(r.Marks) == 0 {
		return
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, s := range r.Series {
		if s.X != r.e.XName {
			continue
		}
		fmt.Fprintf(tw, "  %s\t", s.Name)
		for i := range s.Points {
			fmt.Fprintf(tw, "%s\t", number(s.Points[i].Figures[Throughput].Median))
		}
		fmt.Fprintln(tw)
	}
	_ = tw.Flush()
	for _, m := range r.Marks {
		switch {
		case m.Phase:
			fmt.Fprintf(w, "  phase %s\n", m.Text)
		case m.Why != "":
			fmt.Fprintf(w, "  %s, %s s: %s: %s\n", m.Series, number(m.X), m.Text, m.Why)
		default:
			fmt.Fprintf(w, "  %s, %s s: %s\n", m.Series, number(m.X), m.Text)
		}
	}
}
