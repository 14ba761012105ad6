package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid/internal/sim"
)

// hunt searches for all mutants, or for the one that --mutant names, and prints the number of seeds after which each
// is found.
func (f *simFlags) hunt(cmd *cobra.Command) error {
	debug.SetGCPercent(400) // many small worlds
	out, hunts, missed := cmd.OutOrStdout(), []sim.Hunt{}, 0
	if !f.json {
		fmt.Fprintf(out, "%-26s %-22s %-8s %5s %6s %8s\n", "mutant", "breaks", "cluster", "nodes", "seeds", "time")
	}
	p := newProgress(f.json)
	for _, h := range sim.Hunts() {
		if f.campaign.Mutant != "" && f.campaign.Mutant != h.Name {
			continue
		}
		p.put("", -1, h.Name+" …")
		if err := h.Run(cmd.Context().Done()); err != nil {
			return err
		}
		p.clear()
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		if h.Seed == 0 {
			missed++
		}
		if !f.json {
			printHunt(out, &h)
		}
		hunts = append(hunts, h)
	}
	if f.json {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(hunts); err != nil {
			return err
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d mutants are not found", missed, len(hunts))
	}
	return nil
}

func printHunt(out io.Writer, h *sim.Hunt) {
	seeds := fmt.Sprint(h.Seed)
	if h.Seed == 0 {
		seeds = fmt.Sprintf("> %d", h.Limit)
	}
	fmt.Fprintf(out, "%-26s %-22s %-8s %5d %6s %8s\n", h.Name, h.Where, h.Protocol, h.Nodes, seeds,
		h.Elapsed.Round(100*time.Millisecond))
}
