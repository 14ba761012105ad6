// Package registry lists the protocols: what makes their cores, in which orders and placements they run, whether they
// serve etcd's API, how many crashes they survive, and which of their rules can be broken on purpose. It is the one
// place to look up a protocol by name, for the library, the server's flags, the simulator and the benchmarks.
//
// It decides which combinations of protocol, order and placement are supported.
//
// How to read it:
//
//	protocol.go  the description of a protocol, and what follows from it
//	list.go      the protocols
//	choice.go    a protocol with everything that is set of it
//	settings.go  the settings of protocols, and which protocols have one
//	tune.go      the settings of a running cluster
//	switch.go    another protocol of a running cluster
//	steps.go     how a switch is made, one change after the other
//	begins.go    what instances begin with under a profile
//	guess.go     which core wrote a directory that does not tell it
//
// May import: protocol, the folders of the protocols, order.
package registry
