//go:build !linux

package bench

// Filesystem names the kind of file system that holds a directory.
func Filesystem(string) string { return "unknown" }
