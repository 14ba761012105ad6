// Package draw is all chance of a run of the simulator. It follows from the run's seed.
//
// Each purpose has a source of its own, which is declared once, by name, beside the code that draws from it.
// So a new source changes nothing in what others draw, and no two draw the same numbers.
//
// How to read: source.go (sources, and those of one run), chance.go (what is drawn), numbers.go (the sources
// that saved seeds know by a number).
//
// Imports: nothing of braid.
package draw
