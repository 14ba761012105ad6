// Package world is a simulated world without its inhabitants.
//
//   - base.go: time, chance, counters, the hash of a run, the first violation.
//   - queue.go: the events that are planned.
//   - trace.go: what is printed.
package world
