// Package quorum is the arithmetic of majorities: what a set of voters has agreed on, and
// how a vote stands. A set is joint while a membership changes: then both halves decide.
//
// It decides nothing by itself and imports only the contract. quorum.go is all of it.
package quorum
