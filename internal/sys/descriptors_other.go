//go:build !unix

package sys

// Descriptors returns the maximal number of descriptors of this process; here it is not known.
func Descriptors() (n int, ok bool) { return 0, false }
