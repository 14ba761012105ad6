// Package fault has the simulated cluster, its faults, and the settings that the seed draws for both. It does not
// depend on the phases of a run, on campaigns, or on the demands of the second phase.
//
// World has methods for the events of members (node.Observer), and for queries that most faults need. A single fault
// is functions in a file of its own, which take the World.
//
//   - world.go: a cluster. options.go: the options of a run. settings.go, drawings.go: what the seed draws, in order.
//   - Drawing of settings: timesettings.go, clientsettings.go, linksettings.go, disksettings.go, membersettings.go,
//     coresettings.go, placement.go (protocols, and bodies), epochs.go, weave.go, keyed.go, bykey.go.
//   - fault.go: the type Fault. faultlist.go: all faults. meet.go: faults that coincide. aim.go: faults that look at
//     what members hold.
//   - Queries of faults: start.go (starts of members), leader.go (the current leader), decisive.go (members that can
//     decide), serving.go (members that must make progress), operator.go (requests of operators).
//   - Faults, a file each. Processes: crash.go, pause.go, clock.go, away.go, lag.go. Links: partition.go, burst.go,
//     narrow.go, late.go, hubs.go, hold.go, promise.go. Disks: slowdisk.go, full.go, ioerror.go, lost.go, hotcopy.go.
//     Damage: bodyfaults.go, rot.go, sick.go. Operators: transfer.go, change.go, instancecount.go, tune.go with
//     knobs.go and leasetune.go, switch.go, target.go, fitting.go, moved.go, straggle.go, upgrade.go, drain.go.
//     Invalid proposals: garble.go.
//   - Other events: birth.go (clusters with an initial state), apart.go (members that were founded apart),
//     namesakes.go (clusters of the same members), smallworld.go (the other cluster of these two), astray.go (state
//     machines of other logs), otherflags.go (flags of other protocols), depart.go (members that leave).
//   - observe.go: reactions of World to members. merging.go: the time until entries are applied.
package fault
