// Package world is a simulated world without members.
//
//   - base.go: time, scheduled events, random numbers, counters, the hash of a run, the first violation.
//   - trace.go: the printed trace.
package world
