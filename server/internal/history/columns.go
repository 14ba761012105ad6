package history

import (
	"math"
	"time"
)

// column is a figure of a sample, in the order of the columns: its name, its meaning, and how it follows from the
// readings before and after an interval of so many seconds. NaN: it is not known.
type column struct {
	name, about string
	of          func(before, now *Reading, seconds float64) float64
}

// columns are all figures of a sample.
var columns = []column{
	{"writes", "requests of clients that changed keys or leases and were answered, per second",
		rate(func(r *Reading) float64 { return float64(r.Writes.total()) })},
	{"reads", "reads of clients that were answered, per second",
		rate(func(r *Reading) float64 { return float64(r.Reads.total()) })},
	{"failed", "requests of clients that failed in the cluster, per second",
		rate(func(r *Reading) float64 { return float64(r.Failed) })},
	{"write_p50_ms", "time within which half of the writes were answered", quantile(0.5, writes)},
	{"write_p99_ms", "time within which 99 % of the writes were answered", quantile(0.99, writes)},
	{"read_p50_ms", "time within which half of the reads were answered", quantile(0.5, reads)},
	{"read_p99_ms", "time within which 99 % of the reads were answered", quantile(0.99, reads)},
	{"applied", "positions of the global log applied, per second",
		rate(func(r *Reading) float64 { return float64(r.Applied) })},
	{"log_bytes", "bytes written to the log, per second",
		rate(func(r *Reading) float64 { return float64(r.LogBytes) })},
	{"fsyncs", "syncs of the log, per second", rate(func(r *Reading) float64 { return float64(r.Syncs.total()) })},
	{"fsync_p99_ms", "time within which 99 % of the syncs ended",
		quantile(0.99, func(r *Reading) Distribution { return r.Syncs })},
	{"sent_bytes", "bytes sent to members, per second", rate(func(r *Reading) float64 { return float64(r.Sent) })},
	{"received_bytes", "bytes received from members, per second",
		rate(func(r *Reading) float64 { return float64(r.Received) })},
	{"client_in_bytes", "bytes received from clients, per second",
		rate(func(r *Reading) float64 { return float64(r.ClientIn) })},
	{"client_out_bytes", "bytes sent to clients, per second",
		rate(func(r *Reading) float64 { return float64(r.ClientOut) })},
	{"cpu_cores", "processors that the process kept busy",
		rate(func(r *Reading) float64 { return known(r.CPU > 0, r.CPU.Seconds()) })},
	{"memory_bytes", "resident memory of the process",
		gauge(func(r *Reading) float64 { return known(r.Memory > 0, float64(r.Memory)) })},
	{"db_bytes", "size of the database file", gauge(func(r *Reading) float64 { return float64(r.DB) })},
	{"db_in_use_bytes", "bytes in use in the database file",
		gauge(func(r *Reading) float64 { return float64(r.DBInUse) })},
	{"log_size_bytes", "bytes of log on disk", gauge(func(r *Reading) float64 { return float64(r.LogSize) })},
	{"disk_free_bytes", "bytes that may still be written to the file system of the data directory",
		gauge(func(r *Reading) float64 { return known(r.DiskFree >= 0, float64(r.DiskFree)) })},
	{"lag", "entries committed and not applied, of all instances",
		gauge(func(r *Reading) float64 { return float64(r.Lag) })},
	{"pending_bytes", "bytes of proposals of this member that are not completed",
		gauge(func(r *Reading) float64 { return float64(r.Pending) })},
	{"slots", "slots that came into the log, per second, where the protocol has slots",
		rate(func(r *Reading) float64 { return known(r.HasSlots, float64(r.Slots)) })},
	{"skipped", "slots that came into the log without a value, per second",
		rate(func(r *Reading) float64 { return known(r.HasSlots, float64(r.Skipped)) })},
	{"connections", "connections of clients", gauge(func(r *Reading) float64 { return float64(r.Connections) })},
	{"watches", "watches of clients", gauge(func(r *Reading) float64 { return float64(r.Watches) })},
}

func writes(r *Reading) Distribution { return r.Writes }
func reads(r *Reading) Distribution  { return r.Reads }

// rate is by how much a counter grew, per second. There is none if the counter is less than before.
func rate(of func(*Reading) float64) func(before, now *Reading, seconds float64) float64 {
	return func(before, now *Reading, seconds float64) float64 {
		if grown := of(now) - of(before); grown >= 0 {
			return grown / seconds
		}
		return math.NaN()
	}
}

func gauge(of func(*Reading) float64) func(before, now *Reading, seconds float64) float64 {
	return func(_, now *Reading, _ float64) float64 { return of(now) }
}

func quantile(q float64, of func(*Reading) Distribution) func(before, now *Reading, seconds float64) float64 {
	return func(before, now *Reading, _ float64) float64 { return of(now).since(of(before)).quantile(q) }
}

func known(is bool, value float64) float64 {
	if !is {
		return math.NaN()
	}
	return value
}

// Sample is what a member did in an interval.
type Sample struct {
	At      float64   // the end of the interval, in seconds since 1970
	Seconds float64   // its length
	Values  []float64 // one for each column; NaN: not known
}

// between is the sample of the interval between two readings.
func between(before, now *Reading) Sample {
	seconds := max(now.At.Sub(before.At).Seconds(), 1e-3)
	s := Sample{At: float64(now.At.UnixMilli()) / 1000, Seconds: max(1, math.Round(seconds)),
		Values: make([]float64, len(columns))}
	for i := range columns {
		s.Values[i] = columns[i].of(before, now, seconds)
	}
	return s
}

// Intervals of samples, and how many of each are held: ten minutes and an hour.
const (
	Fine   = time.Second
	Coarse = 10 * time.Second

	mostFine, mostCoarse, mostEvents = 600, 360, 500
)
