// Package epochs decides what follows from the log of ISS alone, so that all members decide the same: where an
// epoch ends, which members lead in the next one, which slots and which buckets each of them has.
//
// An epoch is a run of slots. Its leaders share them: the slots of one leader are its segment. A leader whose
// segment ends with ⊥ is suspected, and may not lead for some epochs. A leader that needs few of its slots has
// fewer in the next epoch. Clients' sessions are in buckets, and each bucket has one leader.
package epochs
