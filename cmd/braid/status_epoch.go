package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/braidlog/braid/internal/status"
)

// printEpochs prints the leaders of the epoch, and the progress of each leader's slots.
func printEpochs(w io.Writer, members []status.Member) {
	names := nameOf(members)
	head := "\nMEMBER\tEPOCH\tSLOTS\tBANNED\tSEGMENTS DECIDED\tNO VALUE\tEPOCH'S STATE"
	for _, m := range members {
		for _, i := range m.Instances {
			e := i.Epoch
			if e == nil {
				continue
			}
			if head != "" {
				fmt.Fprintln(w, head)
				head = ""
			}
			fmt.Fprintf(w, "%s\t%d\t%d to %d\t%s\t%s\t%s\t%s\n", orDash(m.Name), e.Number, e.First, e.Last,
				orDash(banned(e, names)), orDash(segments(e, names)), share(e.Skipped, e.Slots), epochState(e))
		}
	}
}

// banned lists the members that may not lead, and the epoch in which each leads again. Members of an older version do
// not report that.
func banned(e *status.Epoch, names func(id string) string) string {
	var list []string
	for i, id := range e.Banned {
		text := names(id)
		if i < len(e.BannedUntil) && e.BannedUntil[i] > 0 {
			text += fmt.Sprintf(" until %d", e.BannedUntil[i])
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// segments is, for each leader, the progress of its slots, and the ballot if a member suspects it.
func segments(e *status.Epoch, names func(id string) string) string {
	var list []string
	for _, s := range e.Segments {
		text := fmt.Sprintf("%s %d", names(s.Leader), s.Decided)
		if s.Ballot > 0 {
			text += fmt.Sprintf(" (ballot %d of %s)", s.Ballot, names(s.By))
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

func share(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%d%% of %d", 100*part/whole, whole)
}

func epochState(e *status.Epoch) string {
	switch {
	case e.NoQuorum:
		return "too few members are up"
	case e.Unsettled:
		return "a change of members waits for the next epoch"
	case e.Ending:
		return "ends"
	}
	return "under way"
}
