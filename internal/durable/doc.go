// Package durable creates directories that survive a power failure.
//
// A file system may lose a new directory with its contents, until the parent directory is synced, even if the files
// in it were synced. All data directories are created here.
package durable
