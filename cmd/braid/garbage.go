package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// maxGarbage bounds the growth of the heap between two garbage collections in bytes, unless that is less than what
	// a collection has to scan: the heap of a member with little data grows by more than its live size, because
	// collections cost little then. One with many pointers doubles, as Go's own default has it. The bytes of large
	// values are not scanned.
	maxGarbage = 16 << 20
	// minGrowth is the least percentage, so that large values are not collected one by one.
	minGrowth = 50
)

// boundGarbage sets the garbage collection percentage, and lowers it after each collection if the heap would
// otherwise grow by more than maxGarbage bytes. It never goes below minGrowth, unless percent is.
func boundGarbage(percent int) {
	debug.SetGCPercent(percent)
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}
	set := percent
	var collected func(int)
	collected = func(int) {
		metrics.Read(heap)
		if next := growth(percent, heap[0].Value.Uint64(), heap[1].Value.Uint64()); next != set {
			set = next
			debug.SetGCPercent(next)
		}
		runtime.AddCleanup(new(collection), collected, 0)
	}
	collected(0)
}

// collection is an unreferenced object: its release indicates a garbage collection.
type collection struct{ _ [16]byte }

// growth returns the garbage collection percentage for a heap of so many live bytes, of which a collection scans some:
// those with pointers. Steps are coarse, because setting a new value stops the world for a moment.
func growth(percent int, live, scanned uint64) int {
	const step = 25
	bound := int(max(maxGarbage, min(live, scanned))*100/max(live, 1)) / step * step
	return min(percent, max(bound, minGrowth))
}
