package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// maxGarbage bounds the growth of the heap between two garbage collections in bytes, unless that is less than the
// live heap: the heap of a member with little data grows by more than its live size, because collections cost little
// then, and that of a member with much data doubles, as Go's own default has it.
const maxGarbage = 16 << 20

// boundGarbage sets the garbage collection percentage, and lowers it after each collection if the heap would
// otherwise grow by more than maxGarbage bytes. It never goes below 100, unless percent is.
func boundGarbage(percent int) {
	debug.SetGCPercent(percent)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	set := percent
	var collected func(int)
	collected = func(int) {
		metrics.Read(live)
		if next := growth(percent, live[0].Value.Uint64()); next != set {
			set = next
			debug.SetGCPercent(next)
		}
		runtime.AddCleanup(new(collection), collected, 0)
	}
	collected(0)
}

// collection is an unreferenced object: its release indicates a garbage collection.
type collection struct{ _ [16]byte }

// growth returns the garbage collection percentage for a heap with this many live bytes. Steps are coarse,
// because setting a new value stops the world for a moment.
func growth(percent int, live uint64) int {
	const step = 25
	bound := maxGarbage * 100 / int(max(live, 1)) / step * step
	return min(percent, max(bound, 100))
}
