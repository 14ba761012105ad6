// Package sys is what every package that calls the operating system directly has to know of its
// answers: a call that a signal interrupted is made again, and a process that has no descriptor
// left can try again later.
//
// Calls of the standard library repeat interrupted calls on their own. Calls through
// golang.org/x/sys/unix and syscall do not, and neither do some methods of files: what may be
// interrupted goes through Again.
//
// May import: nothing of braid.
package sys
