package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// maxGarbage is how many bytes the heap may grow between two garbage collections, unless that is less than
// what lives.
const maxGarbage = 256 << 20

// boundGarbage lets the heap grow by percent between garbage collections, but by no more than maxGarbage
// bytes where much lives: a large heap that grows fivefold takes memory, and collecting it seldom gains little.
// It is adjusted after each collection.
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

// collection is an object that nothing refers to: that it is freed shows that garbage was collected.
type collection struct{ _ [16]byte }

// growth is by how many percent a heap may grow of which so many bytes live. Steps are coarse, because a new
// value stops the world for a moment.
func growth(percent int, live uint64) int {
	const step = 25
	bound := maxGarbage * 100 / int(max(live, 1)) / step * step
	return min(percent, max(bound, 100))
}
