// Package codedmodel is a model of CRaft with members that change, members that are behind, snapshots, trims and whole
// copies, and a search of all its states. It is only tests: nothing imports it, and it shares no code with what
// ships.
//
// There are terms, and elections by any smallest quorum. A leader that prepares hears any members. Entries come to
// members as nothing, as rows or whole, in any order, from the leader of any term, at any time. Disks lose what
// is not synced, and members forget what they knew to be committed after their snapshot. The questions
// are those of docs/internals/craft.md, 2.8: whether bodies stay durable on the disks (C1), whether what is
// committed is ever cut (C2, C8), and whether there is one entry at an index.
//
// Not in it: joint configurations, five members (answers of old terms matter only there), bodies that are
// superseded, damage, lanes, acknowledgements that leave before a follower's disk is done.
//
// How to read: model_test.go (the state, the rules and their variants), terms_test.go (terms, and what a leader
// knows of the others), steps_test.go (what may happen next), elect_test.go (elections, and how a
// leader prepares), lead_test.go (what a leader does, and what comes of it), judge_test.go (what must hold, and
// which states are alike), run_test.go (clusters, and what is expected of each variant;
// campaign models searches them whole).
//
// May import: internal/explore.
package codedmodel
