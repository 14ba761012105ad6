//go:build !race

package testsize

// raced: the race detector is part of this program.
const raced = false
