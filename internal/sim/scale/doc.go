// Package scale predicts the performance of a cluster with more cores and network cards than this machine has. It is
// a simulation in which work takes the time that it costs.
//
// # The model
//
// All decisions are made by the code of production, which really runs. Each member executes the code of a member of
// production: [instance.Hosted] has the turns of its instances, around the core of any protocol of the registry.
// [intake.Proposals] gathers commands into batches, [instance.WakeTakers] or the keys select the instance of the next
// one. [wal.Commits] is group commit, on a log in memory. [apply.Apply] applies, and creates snapshots, so that logs
// are cut. Package order merges the logs, or keeps groups of keys apart. So the model does not assume the number and
// size of batches, the number of messages for a command, of entries in a message, of syncs for a batch, which
// instances skip, or which commands conflict. All this results from the run.
//
// The rest is a discrete-event simulation, which decides nothing. It only lets time pass for the members' work. A
// member's machine has a number of cores. The threads of a member are those of package replica and of package
// transport: the load, an event loop for each instance, the writer of the one log, the apply loop, and for each other
// member and instance a sender and a receiver. A thread with work waits for a core, keeps it for the cost of the work,
// and then publishes the results. Costs are counted by command, batch, entry, message, byte, turn and sync.
// [Calibrate] measures them on this machine, with small parts of the real code, by the clock of the thread that
// executes them: other processes do not add to them. They are stored with every result ([Costs]). The costs of a
// protocol's own code ([Steps]) are measured while a simulation runs it: each type of message, each proposal, tick and
// so on, in clusters with the lowest and the highest requested number of members, and a number between. A disk syncs
// one batch at a time, and takes as long as this machine's disk did. A card sends one message after the other at its
// bandwidth, and receives in the same way.
//
// The same seed gives the same result, always.
//
// # Limits of the model
//
//   - Interference of cores: caches, memory bandwidth, hyper-threads, lower clock rates.
//     So the model is optimistic for more cores.
//   - The scheduler: a turn is never interrupted, and any core is as good as another.
//   - Garbage collection, timers, and the work of package replica between the parts that are
//     measured. One factor on all costs of CPU replaces that: [Fit] finds it by comparing the CPU
//     time of a command with that of clusters that were measured here. It is stored with the costs.
//   - The kernel's own threads for the network: a loopback write includes the receiver's part.
//   - Bodies, reads, faults, leader changes that the protocol does not make by itself. Snapshots of
//     the state cost nothing, and none is sent. An idle log is not sealed.
//   - Caches of each member. When costs are measured, one core runs the code of all
//     members in turns, so their state is rarely in its near caches. This increases the measured
//     costs, the more so with more members.
//   - Streams: all messages of an instance to a member are on one link, in order. A link has no
//     limit.
//
// How to read: config.go (a run and its result), costs.go, steps.go, run.go; protocol.go (dependencies on the
// protocol); world.go (time, cores, threads); member.go, loop.go, carry.go (the output of a turn), bill.go (its
// costs), disk.go, memory.go, apply.go, link.go, load.go (a member); calibrate.go, clock.go, metered.go, loopback.go
// and measure.go (measurements of costs), compare.go (the model against measurements).
//
// May import: protocol, member, order, wal, registry.
package scale
