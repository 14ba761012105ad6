//go:build !unix

package sys

// Descriptors returns how many descriptors this process may have at a time; here it is not known.
func Descriptors() (n int, ok bool) { return 0, false }
