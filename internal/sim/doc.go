// Package sim simulates clusters. One seed decides everything that happens in a run, and judges
// check it.
//
// The members run the code of production: the protocol's core, package member (instance, applier,
// sessions, recovery, what gathers and retains bodies), the files of package datadir, and the log and
// the bodies of package wal.
// Only what surrounds them is simulated: time, links, disks, clocks, clients, and an operator who
// sometimes makes mistakes.
//
// A run has two phases. In the first phase there are faults. Members lose power in the middle of
// writes. Links lose, repeat, reorder and damage messages, and are cut. Disks are slow, stand
// still, get full or fail operations. Clocks drift, and processes stand still. Bytes on disks are
// damaged, and whole disks are lost. The operator changes the membership and has leaders hand over.
// No fault goes beyond what the protocol promises to survive: a loss of power never takes what was
// synced, for example. In the second phase all faults end. All members live, or only as many as can
// decide. Then there must be progress in bounded time.
//
// Before the first phase the seed draws the settings: sizes, rates, latencies, limits, and which
// faults there are at all (swarm testing). Limits are often tiny, so that full queues, snapshots
// and ends of segments happen all the time.
//
// World has methods for the phases of a run, for what members report (node.Observer), and for what most faults ask. What
// one fault or demand does is a function in its file, which takes the World.
//
// How to read:
//   - package world (time, planned events, the trace), package count (what is counted), package draw
//     (chance), world.go (a cluster in it), run.go (the two phases),
//     campaign.go (many runs), mutants.go (search for mutants).
//   - drawings.go (what the seed draws, in order), settings.go (settings), package node has those
//     that members know), and what draws them: timesettings.go,
//     clientsettings.go, linksettings.go, disksettings.go, membersettings.go, coresettings.go,
//     placement.go (protocols, and settings of bodies), epochs.go, unequal.go (members with settings of
//     their own).
//   - package client (clients), package history (what they were told).
//   - operator.go (what an operator asks of members).
//   - fault.go (what a fault is), faultlist.go (all faults), meet.go (how faults come together), aim.go
//     (faults that look at what members hold), start.go, leader.go, decisive.go (what faults ask: who
//     starts, who leads, who is missed). A fault is a file:
//     processes crash.go, pause.go, clock.go, away.go, lag.go; links partition.go, burst.go, narrow.go,
//     late.go, hubs.go (only some members have links with all others), hold.go, promise.go (links that
//     stand still, at random or when members are about to vote); disks slowdisk.go, full.go, ioerror.go,
//     lost.go, hotcopy.go; damage bodyfaults.go, rot.go, sick.go; operators transfer.go, change.go,
//     instancecount.go, moved.go (members at other addresses), straggle.go (members that change while one
//     is behind); members that propose nonsense garble.go.
//   - What happens besides: birth.go (clusters that begin with a state), apart.go (members that were
//     founded apart), namesakes.go (clusters of the same members), astray.go (state machines of other
//     logs), depart.go (members that leave).
//   - package node (members, and what they run in), observe.go (what World does when members do something).
//     Package device has the disks and links, package machine the state machine.
//   - calm.go (faults end), demands.go (what the second phase must bring about), and each demand:
//     repairs.go, progress.go, merging.go, depart.go, samestate.go, pace.go (one client alone, where nothing
//     fails), busy.go (many clients), files.go (sizes of files).
//   - package judge (what is judged of decisions, disks and messages), inflight.go (what is judged at each tick).
//   - scenario_test.go (how scenarios are played by hand, and those of Raft), coded_test.go,
//     coded_change_test.go, lostbodies_test.go, weave_test.go, lag_test.go, lost_test.go, rot_test.go, sick_test.go
//     (other scenarios), run_test.go, mutants_test.go (campaigns), network_test.go (times of messages).
//
// Package scale, in a folder of its own, is not about faults but about speed: what more cores and
// more network cards would do.
//
// Imports: protocol, order, member, datadir, wal, check, erasure, internal/transport/netspec.
package sim
