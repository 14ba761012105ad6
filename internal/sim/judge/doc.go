// Package judge judges the decisions, disks and messages of members of a simulated cluster. It does not depend on
// members: it gets numbers, entries, records and messages, and compares them with those of other members before.
//
//   - court.go: the judges of a run. instance.go: those of one instance, and its memberships.
//   - record.go: entries and records in the types of package check.
//   - claim.go: claims of messages about disks. electorate.go: accepted proposals, when voters change.
//   - globallog.go: positions in the global log, and its numbers of instances. operation.go: results of operations.
//   - profile.go: the settings that members share. seal.go: the log continues in other instances.
//   - fit.go: the changes of fitters.
//   - snapshot.go: snapshots and derived sections at an index.
package judge
