// Package history is what a member did lately: figures for each second of ten minutes and each ten seconds of an hour,
// and the last events. It is pure: the time comes with what it is given.
//
// reading.go is what is read of a member, columns.go the figures that follow from two readings, series.go holds the
// newest of them, history.go is the whole with its events, and json.go writes samples.
//
// May import: nothing of braid.
package history
