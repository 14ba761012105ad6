// Package draw is the source of all random numbers of a run of the simulator. They follow from the run's seed.
//
// Each purpose has a source of its own, which is declared once, by name, next to the code that draws from it. So a
// new source does not change the numbers of others, and no two draw the same numbers.
//
// How to read: source.go (sources, and those of one run), chance.go (kinds of draws), numbers.go (the sources that
// saved seeds know by a number).
//
// Imports: nothing of braid.
package draw
