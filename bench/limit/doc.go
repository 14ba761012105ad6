// Package limit is a replicated log to measure others by: it does only the work that every replicated log must do. One
// member leads from the start and forever. It sends batches of commands to the followers, every member writes them to a
// disk with an fdatasync before it acknowledges them, and a batch is committed when a majority has acknowledged it.
// There are no elections, sessions, membership changes, snapshots or repairs: the first error ends the cluster. So its
// throughput and its CPU time are about the best that a replicated log can reach on a machine. Only a log that keeps
// large commands in fragments can be better: every member of this one has whole copies.
//
// It is fast for these reasons: a batch has all commands that came during the last sync, and few batches are in flight;
// the leader sends a batch before it syncs its own log; a batch is encoded once, with one checksum, and sent and
// written as it is; a log is one file of zeros, overwritten in a circle; a batch is applied and answered in one pass;
// nothing is allocated for a single command.
//
// Read it in this order:
//
//	batch.go     commands, as they are sent and written
//	file.go      a member's log on disk
//	leader.go    from proposals to batches, to the followers, to answers
//	follower.go  from batches to acknowledgements
//	cluster.go   the members and the connections between them
//
// May import: internal/vfs.
package limit
