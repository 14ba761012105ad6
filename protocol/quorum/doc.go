// Package quorum is the arithmetic of quorums: the value that a set of voters has agreed on, the result of a vote,
// and whether only the loss of a majority can lose a stored body. A set is joint while a membership changes: then a
// majority of both halves is needed.
//
// It imports only the contract.
//
// How to read: quorum.go (voters), durable.go (bodies), system.go (quorums that are not majorities), grid.go (those
// of voters in rows and columns), tolerance.go (the failures that they tolerate).
package quorum
