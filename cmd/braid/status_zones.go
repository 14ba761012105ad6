package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/braidlog/braid/internal/status"
)

// printZones prints the members of each zone, if any has one, as the member knows them that has applied most.
func printZones(w io.Writer, members []status.Member) {
	newest := slices.MaxFunc(members, func(a, b status.Member) int { return cmp.Compare(a.Applied, b.Applied) })
	in, zones := map[string][]string{}, []string{}
	for _, p := range newest.Members {
		if in[p.Zone] == nil {
			zones = append(zones, p.Zone)
		}
		name := p.Name
		if name == "" {
			name = p.ID
		}
		in[p.Zone] = append(in[p.Zone], name)
	}
	if len(zones) == 0 || len(zones) == 1 && zones[0] == "" {
		return
	}
	slices.Sort(zones)
	fmt.Fprintln(w, "\nZONE\tMEMBERS")
	for _, zone := range zones {
		fmt.Fprintf(w, "%s\t%s\n", orDash(zone), strings.Join(in[zone], ", "))
	}
}
