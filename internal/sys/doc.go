// Package sys handles results of system calls for packages that call the operating system directly: a call that a
// signal interrupted is repeated, and a process without descriptors can retry later. It also has the clock that runs
// while the host sleeps, the memory of the process, and buffers that are not cleared.
//
// Calls of the standard library repeat interrupted calls on their own. Calls through golang.org/x/sys/unix and
// syscall do not, and neither do some methods of files: calls that may be interrupted go through Again.
//
// May import: nothing of braid.
package sys
