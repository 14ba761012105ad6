// Package judge judges what members of a simulated cluster decide, hold and say. It knows no member: it is told
// numbers, entries, records and messages, and compares them with what other members told before.
//
//   - court.go: the judges of a run. instance.go: those of one instance, and its memberships.
//   - record.go: entries and records in the types of package check.
//   - claim.go: what messages say about disks. electorate.go: what was accepted, when voters change.
//   - globallog.go: places in the global log, and how many instances it had. operation.go: what operators are told.
//   - snapshot.go: what snapshots and derived sections have at an index.
package judge
