// Package durable makes directories that are there after a power loss.
//
// A file system may lose a directory that was made, with everything in it, until the directory above is synced,
// although the files in it were. All directories for data are made here.
package durable
