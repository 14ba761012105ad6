package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/protocol/common"
)

// printFit prints which change would fit the load better, as the member knows it that heard of it last.
func printFit(w io.Writer, members []status.Member) {
	var newest *status.Fit
	for i := range members {
		f := &members[i].Fit
		if f.Mode != "" && (newest == nil || f.At != nil && (newest.At == nil || f.At.After(*newest.At))) {
			newest = f
		}
	}
	if newest != nil {
		fmt.Fprintf(w, "\nfit: %s\n", fitText(newest, nameOf(members)))
	}
}

func fitText(f *status.Fit, names func(id string) string) string {
	switch w := f.Wish; {
	case f.Mode == "off":
		return "off"
	case w == nil && f.At == nil:
		return f.Mode + "; the leader has not decided yet"
	case w == nil:
		return f.Mode + "; no change would gain enough"
	default:
		text := f.Mode + "; " + wishText(w, names) + ": " + w.Reason
		if f.Waits != "" {
			text += "; waits: " + f.Waits
		}
		return text
	}
}

// wishText says what a wished change would do.
func wishText(w *status.Wish, names func(id string) string) string {
	to := profileText(w.Protocol, w.Settings, w.Leader, names)
	switch {
	case w.TakesBack:
		return "goes back to " + to
	case w.Restores:
		return "restores service with " + to
	}
	return fmt.Sprintf("would gain %s with %s", factor(w.Gain), to)
}

// profileText names a profile, and its leader if there is to be one.
func profileText(protocol string, settings map[string]string, leader string, names func(id string) string) string {
	words := []string{protocol}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if name != common.FitAvoid.Name { // the fitter's own note
			words = append(words, name+"="+settings[name])
		}
	}
	if leader != "" {
		words = append(words, "led by "+names(leader))
	}
	return strings.Join(words, " ")
}

// factor is a gain, for people.
func factor(gain float64) string {
	return strconv.FormatFloat(math.Round(100*gain)/100, 'f', -1, 64) + "×"
}
