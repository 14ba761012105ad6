// Package fault is a simulated cluster, the faults that happen in it, and what the seed draws for both. It knows nothing
// of the phases of a run, of campaigns, and of what the second phase demands.
//
// World has methods for what members report (node.Observer), and for what most faults ask. What one fault does is a
// function in its file, which takes the World.
//
//   - world.go: a cluster. options.go: what a run is asked for. settings.go, drawings.go: what the seed draws, in order.
//   - What draws settings: timesettings.go, clientsettings.go, linksettings.go, disksettings.go, membersettings.go,
//     coresettings.go, placement.go (protocols, and bodies), epochs.go, weave.go, keyed.go, bykey.go.
//   - fault.go: what a fault is. faultlist.go: all faults. meet.go: how faults come together. aim.go: faults that look at
//     what members hold.
//   - What faults ask: start.go (starts of members), leader.go (which member leads), decisive.go (which members are
//     needed), serving.go (which members make progress), operator.go (what operators ask of members).
//   - A fault is a file. Processes: crash.go, pause.go, clock.go, away.go, lag.go. Links: partition.go, burst.go,
//     narrow.go, late.go, hubs.go, hold.go, promise.go. Disks: slowdisk.go, full.go, ioerror.go, lost.go, hotcopy.go.
//     Damage: bodyfaults.go, rot.go, sick.go. Operators: transfer.go, change.go, instancecount.go, moved.go, straggle.go.
//     Members that propose nonsense: garble.go.
//   - What happens besides: birth.go (clusters that begin with a state), apart.go (members that were founded apart),
//     namesakes.go (clusters of the same members), astray.go (state machines of other logs), depart.go (members that
//     leave).
//   - observe.go, inflight.go: what World does when members do something. merging.go: how soon entries are applied.
package fault
