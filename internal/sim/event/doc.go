// Package event has the scheduled events of a simulation, in the order of their times.
//
// How to read: queue.go.
//
// Imports: nothing of braid.
package event
