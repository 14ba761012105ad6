// Package world is a simulated world without members.
//
//   - base.go: time, random numbers, counters, the hash of a run, the first violation.
//   - queue.go: the scheduled events.
//   - trace.go: the printed trace.
package world
