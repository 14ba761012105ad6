// Package code is the placement of bodies: with which k a body is coded, which form of it each member gets, when an
// entry is stored safely enough to be committed, and who has to hold bodies whole. Its functions decide from a View of
// their member; what is to be sent or appended they return.
//
// How to read: view.go (what is seen of the member), placement.go, code.go (rows and when they are
// enough), rs.go, lag.go (who is too far behind to be counted on), upgrade.go (whole copies where rows are too few),
// coded.go and bodies.go (the coded entries of the log, and what the owner knows of bodies), holdings.go (who holds
// what), restripe.go (changes of the members). mutant.go names the rules that tests break deliberately.
//
// C and G with a number are invariants and gaps of docs/internals/craft.md, 2.8 and 2.2.
//
// May import: protocol and the packages raftlog, message, tracker and members of Raft.
package code
