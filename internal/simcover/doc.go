// Command simcover measures which statements of the deciding code run in the simulator. It fails if
// they are too few: a statement that the simulator does not execute counts as untested. It builds braid
// with counters, runs campaigns of all protocols with it, and prints the share that ran, for each
// package and file:
//
//	go run ./internal/simcover            # packages and files, and whether each package reaches its share
//	go run ./internal/simcover -missing   # and the lines that did not run
//	go run ./internal/simcover -all       # and more seeds, and whether all events happen in them
//	go run ./internal/simcover -for 1m    # new seeds, a minute for each kind of cluster, which count nothing
//
// A seed that fails is printed, and fails the command. No unit test is part of the measured run. rules.go has the
// share that each package must reach, the events that each cluster must cause, and the files and functions that do
// not count, with reasons.
package main
