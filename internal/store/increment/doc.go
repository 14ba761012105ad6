// Package increment is the format of incremental backups: the changes of a database between two positions.
//
// An increment has the history since the first position, entry by entry as it is in the database, all other buckets
// whole, and, if history was compacted meanwhile, a list of the older entries that are left. Applied to the database of
// the first position, it makes exactly the database of the second one.
//
// point.go describes the place of a database in the history of its cluster. write.go has the format and writes an
// increment, file.go opens and checks a file, and read.go reads its records.
//
// It imports nothing of braid but package sums.
package increment
