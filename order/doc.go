// Package order turns the committed entries of a member's instances into the one global
// log: it decides which position of the global log each entry's commands have.
//
// With one instance the global log is that instance's log (single.go). The contract,
// [Order], is made for several instances woven into one.
//
// Like protocol/, this package is pure: no I/O, clock, chance, goroutine or logger.
// May import: protocol.
package order
