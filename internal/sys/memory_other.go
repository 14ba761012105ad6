//go:build !linux

package sys

// ResidentBytes returns how much memory of the machine this process uses; here it is not known.
func ResidentBytes() int64 { return 0 }
