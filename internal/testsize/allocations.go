package testsize

import "testing"

// Counts ends a test that counts allocations under the race detector, which changes what is allocated.
func Counts(t testing.TB) {
	t.Helper()
	if raced {
		t.Skip("the race detector allocates too")
	}
}

// Allocations returns how often a function allocates memory, on average, like [testing.AllocsPerRun]. Other goroutines
// of the process only add to that, so it is the least of six measurements. It calls [Counts].
func Allocations(t testing.TB, runs int, f func()) float64 {
	t.Helper()
	Counts(t)
	least := testing.AllocsPerRun(runs, f)
	for range 5 {
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}
