// Package increment is the format of incremental backups: what a database has at one position and did not have at an
// earlier one.
//
// An increment has the history since then, entry by entry as it is in the database, all other buckets whole, and, if
// history was compacted meanwhile, a list of the older entries that are left. So the database of the earlier position
// together with the increment is exactly the database of the later one.
//
// point.go says where in the history of a cluster a database is. write.go writes an increment and has the format,
// file.go opens and checks a file of one, and read.go reads its records.
//
// It imports nothing of braid but package sums.
package increment
