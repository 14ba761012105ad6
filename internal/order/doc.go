// Package order turns the committed entries of a member's instances into the one global
// log: it decides which position of the global log each entry's commands have.
//
// With one instance the global log is that instance's log (single.go). Several are merged round by round (niagara.go;
// docs/internals/niagara.md, 3.1). An instance that has nothing must not hold up the others, so its leader skips
// rounds. tail.go follows which rounds each log fills; weave.go decides when to skip, and how far. lead.go says who
// leads the global log, plan.go which instances begin and end at a place in it. Groups that share no keys need no
// common order: each has its own (keyed.go). All implement [Order].
//
// Like protocol/, this package is pure: no I/O, clock, chance, goroutine or logger.
// May import: protocol.
package order
