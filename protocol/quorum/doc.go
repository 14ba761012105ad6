// Package quorum is the arithmetic of quorums: what a set of voters has agreed on, how a vote
// stands, and whether a body is stored so that nothing but the loss of a majority loses it. A set
// is joint while a membership changes: then a majority of both halves is needed.
//
// It imports only the contract.
//
// How to read: quorum.go is about voters, durable.go about bodies. system.go is about quorums that
// are no majorities, grid.go about those of voters in rows and columns, and tolerance.go says what
// they tolerate.
package quorum
