// Package filespace allocates disk space for a database file before it grows, because a commit that finds the disk
// full cannot be undone.
//
// filespace.go decides how much is needed and when; filespace_linux.go and filespace_other.go allocate it, where the
// system can.
//
// May import: internal/sys.
package filespace
