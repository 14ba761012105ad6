// Package merged is a model of a seal in a merged log of two instances, with members that join and leave, and coded
// bodies. A search visits all its states. It is only tests: nothing imports it, and it shares no code with what ships.
//
// The seal S is in the first instance's log. p is the end of the round of S, so the second instance's entry of that
// round takes effect. At p all members know the same verdict: S counts if its voters are the first instance's, the
// second instance has followed the same change of members, and every coded body before p is among those that the
// proposer of S has checked. If S does not count, the old order continues. A member that has all up to p begins the new
// instance with the voters at p. It takes no part in the old ones any more, and gives members that are behind what is
// before p. A read asks the first instance, and is confirmed by members that have not begun.
//
// Each instance's log is the one that its members agree on; they get it entry by entry, at any pace, or from a member
// that has begun (Sealed, or a snapshot). A configuration is active when it is in the log, and decided by a quorum of
// both. The second instance follows the first one's changes at any time. What is judged: nothing is decided behind p
// before all up to p; any majority of the new voters that is left has all up to p and its bodies, and can decide; no
// read misses a write of the new order.
//
// Not in it: terms, crashes, first records, first leaders (they are in switchmodel); several new instances.
//
// How to read: model_test.go (the state, the merged log, the verdict, the variants), steps_test.go (what happens),
// judge_test.go (what must hold), run_test.go (what is searched, and what each variant must break).
//
// May import: internal/explore.
package merged
