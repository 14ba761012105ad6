// Package count counts events in runs of the simulator. A counter is declared next to the code that counts it; the
// JSON and the summary of a campaign, and the test that all events happen, read the list of all counters.
//
// How to read: counter.go (one counter, and the list), counts.go (the events of each counter).
//
// Imports: nothing of braid.
package count
