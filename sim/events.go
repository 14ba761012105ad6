package sim

import (
	"fmt"
	"strings"
)

// Events counts what happened in runs. A test bench in which something never happens
// tests nothing of it.
type Events struct {
	Starts       int `json:"starts"`
	HalfStarts   int `json:"power_lost_while_starting"`
	Crashes      int `json:"crashes"`
	HalfWrites   int `json:"power_lost_while_writing"`
	DeadDisks    int `json:"failed_syncs"`
	Elections    int `json:"elections"`
	Lost         int `json:"messages_lost"`
	Damaged      int `json:"messages_damaged"`
	Snapshots    int `json:"snapshots"`
	Streams      int `json:"snapshot_streams"`
	BrokenStream int `json:"snapshot_streams_broken"`
	Installs     int `json:"snapshots_installed"`
	Joint        int `json:"joint_configurations"`
	Changes      int `json:"configurations"`
	Retired      int `json:"members_removed"`
	Reads        int `json:"reads"`
	Refused      int `json:"writes_refused"`
	Unknown      int `json:"writes_unknown"`
	Failovers    int `json:"writes_acknowledged_after_a_change_of_leader"`
}

// fields lists the counters with their names, in order.
func (e *Events) fields() []eventField {
	return []eventField{
		{"starts", &e.Starts}, {"half starts", &e.HalfStarts}, {"crashes", &e.Crashes}, {"half writes", &e.HalfWrites},
		{"dead disks", &e.DeadDisks}, {"elections", &e.Elections}, {"lost messages", &e.Lost}, {"damaged messages", &e.Damaged},
		{"snapshots", &e.Snapshots}, {"streams", &e.Streams}, {"broken streams", &e.BrokenStream}, {"installs", &e.Installs},
		{"joint configurations", &e.Joint}, {"configurations", &e.Changes}, {"members removed", &e.Retired}, {"reads", &e.Reads},
		{"writes refused", &e.Refused}, {"writes unknown", &e.Unknown}, {"failovers of a write", &e.Failovers},
	}
}

type eventField struct {
	name  string
	count *int
}

func (e *Events) add(o *Events) {
	from := o.fields()
	for i, f := range e.fields() {
		*f.count += *from[i].count
	}
}

func (e Events) String() string {
	var b strings.Builder
	for i, f := range e.fields() {
		fmt.Fprintf(&b, "%s%d %s", mark(i > 0, ", "), *f.count, f.name)
	}
	return b.String()
}
