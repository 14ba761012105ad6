// Package count counts what happens in runs of the simulator. A counter is declared beside the code that
// counts it; the JSON and the summary of a campaign, and the test that everything happens, read the list of
// all counters.
//
// How to read: counter.go (one counter, and the list), counts.go (how often each counted).
//
// Imports: nothing of braid.
package count
