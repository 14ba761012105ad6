// Package quorum is the arithmetic of majorities: what a set of voters has agreed on, how
// a vote stands, and whether a body is stored so that nothing but the loss of a majority
// loses it. A set is joint while a membership changes: then both halves decide.
//
// It decides nothing by itself and imports only the contract. quorum.go is about voters,
// durable.go about bodies.
package quorum
