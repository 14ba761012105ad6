package main

import (
	"fmt"
	"io"

	"github.com/braidlog/braid/internal/status"
)

// printLanes prints the progress of members' lanes.
func printLanes(w io.Writer, members []status.Member) {
	names := nameOf(members)
	head := "\nMEMBER\tGENERATION\tCONFIRMED\tACCEPTED\tHELD\tFULLEST LANE\tSENT\tRECEIVED\tSPARED\tSENT " +
		"WHOLE\tMISSED\tREFUSED\tLANE"
	for _, m := range members {
		for _, i := range m.Instances {
			l := i.Lanes
			if l == nil {
				continue
			}
			if head != "" {
				fmt.Fprintln(w, head)
				head = ""
			}
			own := ownLane(l)
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", orDash(m.Name), l.Generation, own.Confirmed,
				l.Accepted, own.Held,
				fullest(l, names), status.Bytes(float64(l.Sent)), status.Bytes(float64(l.Received)),
				status.Bytes(float64(l.Spared)),
				status.Bytes(float64(l.WholeBytes)), l.Missed, l.Refused, laneState(i))
		}
	}
}

func ownLane(l *status.Lanes) status.Lane {
	for _, lane := range l.Lanes {
		if lane.Own {
			return lane
		}
	}
	return status.Lane{}
}

// fullest describes the lane with the most unconfirmed bytes.
func fullest(l *status.Lanes, names func(id string) string) string {
	var most status.Lane
	for _, lane := range l.Lanes {
		if lane.HeldBytes > most.HeldBytes {
			most = lane
		}
	}
	if most.HeldBytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%s: %d%% of %s", names(most.Member), 100*most.HeldBytes/max(l.Window, 1),
		status.Bytes(float64(l.Window)))
}

// laneState describes how blind commands of this member's clients are answered.
func laneState(i status.Instance) string {
	switch l := i.Lanes; {
	case l.Fence:
		return "a change of members waits for the fence"
	case i.Role == "leader":
		return "leads, and needs none"
	case !l.Open:
		return "not open"
	case l.ByLeader:
		return "open, the leader is nearer"
	case !l.Accepting:
		return "open, confirmed only"
	default:
		return "open, accepts"
	}
}
