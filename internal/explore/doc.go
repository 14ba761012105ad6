// Package explore visits all states of a model, the nearest first. So a story of what goes wrong is a
// shortest one. It is for tests: models of what protocols rely on are searched before they are written.
//
// A state is any comparable type. States that are seen are kept as hashes of 64 bits. Two of n states have
// the same one with a probability of n²/2⁶⁵.
package explore
