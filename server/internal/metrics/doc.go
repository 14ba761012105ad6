// Package metrics has the metrics of a server, for Prometheus. A metric is a row of a table: its name, its help and
// how it is read. Adding one is adding a row.
//
// counts.go has the counters of the services, observed.go what changes as things happen, by labels or as a
// distribution, collector.go what is read when metrics are collected, and table.go the tables. The rows are in
// member.go (member, log, links), stages.go (stages of requests), snapshots.go, instances.go, lanes.go and epochs.go
// (instances of the log), fit.go (which change would fit the load better) and requests.go (what the services counted).
// etcd.go lists those of etcd that are not here.
//
// May import: the root package and internal/sys.
package metrics
