//go:build !unix

package sys

import "time"

// CPUTime returns how long processors worked for this process so far, all together; here it is not known.
func CPUTime() time.Duration { return 0 }
