// Package epochs derives from the log of ISS where an epoch ends, which members lead in the next one, and which slots
// and buckets each of them has (docs/internals/iss.md). It uses nothing but the log, so all members derive the same.
//
// An epoch is a run of slots. Its leaders share them: the slots of one leader are its segment. A leader whose segment
// ends with ⊥ is suspected, and may not lead for some epochs. A leader that needs few of its slots has fewer in the
// next epoch. Clients' sessions are in buckets, and each bucket has one leader.
//
// How to read:
//
//	epoch.go     an epoch: its leaders and their turns
//	segment.go   the slots of one leader; bucket.go: which clients' commands it proposes
//	history.go   the log, slot by slot, and the next epoch at the end of one
//	policy.go    which voters lead: suspicions and bans
//	share.go     how many slots a leader has, and how long an epoch is
//	settings.go  the settings of a cluster
//	section.go   the history in a snapshot
//	check.go     the invariants
package epochs
