// Package explore visits all states of a model, the nearest first. So the trace of an error is a shortest one. It is
// for tests: models of a protocol's rules are searched before the protocol is written.
//
// A state is any comparable type. Visited states are kept as hashes of 64 bits. Two of n states have the same hash
// with a probability of n²/2⁶⁵.
package explore
