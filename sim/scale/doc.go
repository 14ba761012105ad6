// Package scale answers what a cluster would do with more cores and more network cards than
// this machine has. It is a simulation whose time is made of costs.
//
// # The model
//
// Everything that decides is the code of production and really runs: each member has its
// instances ([member.Instance] around the core of raft), which propose, append, acknowledge,
// commit and skip, and the order that weaves their logs (package order). How many batches
// there are, how large, how many entries a message has, how many syncs a batch waits for and
// which instances skip is therefore not assumed: it happens.
//
// What surrounds that is a discrete-event simulation. A member's machine has so many cores.
// The threads of a member are those of package replica and of package transport: the load, an
// event loop for each instance, the writer of the one log, the apply loop, and for each peer and
// instance one that sends and one that receives. A thread that has work waits for a core, keeps
// it for as long as the work costs, and then lets go what came of it. Costs are counted
// by command, batch, entry, message, byte, turn and sync. They are measured on this machine
// by [Calibrate], with the real code in small pieces, and belong with every result ([Costs]).
// A disk syncs one batch at a time, and takes as long as this machine's disk did. A card
// sends one message after the other at its bandwidth, and receives likewise.
//
// The same seed gives the same result, always.
//
// # What it leaves out
//
//   - What cores do to each other: caches, memory bandwidth, hyper-threads, clock rates that fall.
//     So the model flatters whoever uses more cores.
//   - The scheduler: a turn is never interrupted, and any core is as good as another.
//   - Garbage collection, timers, and the work of package replica between the pieces that are
//     measured. One factor on all costs of CPU stands for that: [Fit] finds it by comparing the
//     model with clusters that were measured here, and it is stored with the costs.
//   - The kernel's own threads for the network: a loopback write includes the receiver's part.
//   - Bodies, snapshots, reads, faults, changes of leader. A log is cut without a snapshot.
//
// How to read: config.go (what is asked and answered), costs.go, run.go; world.go (time,
// cores, threads); member.go, loop.go, disk.go, link.go, load.go (a member); calibrate.go and
// measure.go (what costs are), compare.go (how far the model is off).
//
// May import: protocol, order, replica's pure parts, wal.
package scale
