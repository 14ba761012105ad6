// Package ballots is a model of a seal in a log that ballots decide: of multi-Paxos, and of ISS, whose epochs have many
// leaders. A search visits all its states. It is only tests: nothing imports it, and it shares no code with what ships.
//
// Slots are decided in any order, by votes that any member may count. In multi-Paxos p is the slot of the first seal,
// once all slots before it are decided: an empty slot before it may yet become another seal. In ISS p is the last slot
// of the epoch of the first seal, and the seal does not count if the members change with the next epoch; whether they
// do is known only at the end of the epoch. A member begins when it knows all up to p, and then promises and votes no
// more in the old order. The first leader m of the new order proposes in ballot 0, without promises, for no ballot is
// lower; only in the incarnation that wrote its first record, and after that is durable. Others, and m after a
// restart, open higher ballots. A read of the old order needs a majority that has not begun; a ballot that was not
// replaced is no lease, for others may count the votes for S.
//
// In it: three members; one to four old slots, one or two segments, epochs of two slots, one new slot; two further
// ballots in all segments together; up to two crashes, which end the proposers' ballots and leave votes, promises and
// first records; messages that are lost, late, repeated and reordered. A member may know a decision as soon as there
// is one. Not in it: skips and the end of an epoch (issmodel), snapshots, several segments in the new order.
//
// How to read: model_test.go (the state, p, variants), steps_test.go (what happens), judge_test.go (what must hold),
// run_test.go (what is searched, and what each variant must break).
//
// May import: internal/explore.
package ballots
