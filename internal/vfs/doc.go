// Package vfs is the file system interface that braid uses, with two implementations.
//
//	vfs.go      the interface: FS and File
//	os*.go      the operating system's; free*.go: its free space
//	lock*.go    its locks, which exclude other processes and other users of this one
//	mem.go      one in memory, for tests; memfile.go: its files
//	crash.go    its state after a power failure
//	copy.go     copies of directories
//	unsynced.go one without durability
//
// Package errorfs has one whose operations fail, for tests. The simulator's disk is in internal/sim.
package vfs
