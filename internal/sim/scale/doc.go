// Package scale answers what a cluster would do with more cores and network cards than this machine
// has. It is a simulation in which work takes the time that it costs.
//
// # The model
//
// The code that decides is the code of production, and it really runs. Each member executes what a
// member of production executes: [instance.Hosted] has the turns of its instances, around the core of
// any protocol of the registry. [intake.Proposals] gathers commands into batches, [instance.WakeTakers]
// says which instance takes the next one, or the keys do. [wal.Commits] is group commit, on a log in
// memory. [apply.Apply] applies, and takes snapshots, so that logs are cut. Package order weaves the
// logs, or keeps groups of keys apart. So the model does not assume how many batches there are and how
// large they are, how many messages a command takes, how many entries a message has, how many syncs a
// batch waits for, which instances skip, or which commands conflict. All this results from the run.
//
// The rest is a discrete-event simulation. It decides nothing. It lets time pass for what members
// do. A member's machine has a number of cores. The threads of a member are those of package
// replica and of package transport: the load, an event loop for each instance, the writer of the
// one log, the apply loop, and for each other member and instance one that sends and one that
// receives. A thread that has work waits for a core, keeps it for as long as the work costs, and
// then hands on the results. Costs are counted by command, batch, entry, message, byte, turn and
// sync. [Calibrate] measures them on this machine, with the real code in small pieces. They belong
// with every result ([Costs]). What a protocol's own code costs ([Steps]) is measured while a simulation
// runs it: each type of message, each proposal, tick and so on, in clusters of the fewest and the most
// members that are asked for, and of a number between. A disk syncs one batch at a time, and takes as long as this
// machine's disk did. A card sends one message after the other at its bandwidth, and receives in
// the same way.
//
// The same seed gives the same result, always.
//
// # What it leaves out
//
//   - What cores do to each other: caches, memory bandwidth, hyper-threads, clock rates that fall.
//     So the model is too good for whoever uses more cores.
//   - The scheduler: a turn is never interrupted, and any core is as good as another.
//   - Garbage collection, timers, and the work of package replica between the pieces that are
//     measured. One factor on all costs of CPU stands for that: [Fit] finds it by comparing the
//     model with clusters that were measured here, and it is stored with the costs.
//   - The kernel's own threads for the network: a loopback write includes the receiver's part.
//   - Bodies, reads, faults, changes of leader that the protocol does not make by itself. Snapshots of
//     the state cost nothing, and none is sent. An idle log is not sealed.
//   - That members have caches of their own. Where costs are measured, one core runs the code of all
//     members in turns, so their state is rarely in its near caches. The more members, the higher are the
//     costs that this adds.
//   - Streams: all messages of an instance to a member are on one link, in order. A link has no
//     limit.
//
// How to read: config.go (what is asked and answered), costs.go, steps.go, run.go; protocol.go (what follows
// from the protocol); world.go (time, cores, threads); member.go, loop.go, carry.go (what a turn wants),
// bill.go (what it costs), disk.go, memory.go, apply.go, link.go, load.go (a member); calibrate.go, metered.go,
// loopback.go and measure.go (what costs are), compare.go (how far the model is off).
//
// May import: protocol, member, order, wal, registry.
package scale
