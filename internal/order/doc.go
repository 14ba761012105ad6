// Package order turns the committed entries of a member's instances into the one global log: it assigns positions of
// the global log to each entry's commands.
//
// Instances are merged round by round (niagara.go; docs/internals/niagara.md, 3.1). With one instance the global log is
// that instance's log, until others join it (alone.go). An idle instance must not delay the others, so its leader skips
// rounds. tail.go tracks which rounds each log fills; skip.go decides when to skip, and how far. lead.go determines the
// leader of the global log, plan.go the instances that begin and end at a place in it, seal.go where all of them end
// and the log continues in others. Groups that share no keys need no common order: each has its own (keyed.go). All
// implement [Order].
//
// Like protocol/, this package is pure: no I/O, clock, chance, goroutine or logger.
// May import: protocol.
package order
