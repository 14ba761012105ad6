// Package slots is what protocols share that decide slots of a log, and do not replace what stands in
// it: ballots, the log of what is decided, and what is known of the member's own disk.
package slots
