// Package backups keeps backups in a directory: whole ones, which are snapshot files as etcdctl saves them, and
// increments. An increment continues the backup before it.
//
// A backup appears under its name once it is complete, checked and durable. So a directory in which a process was
// killed, or that was copied while a backup was made, has all backups up to the last complete one.
//
// list.go lists a directory, info.go describes a single backup, check.go compares backups with their digests, chain.go
// finds the files from which a state is restored, and dir.go adds and removes backups.
package backups
