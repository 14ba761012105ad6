package sys

import "golang.org/x/sys/unix"

// steady is the clock that also runs while the host sleeps.
const steady = unix.CLOCK_MONOTONIC
