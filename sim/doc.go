// Package sim simulates clusters: one seed decides everything that happens in one, and
// everything that happens is judged.
//
// The members run the code that production runs: the protocol's core, package
// member (instance, applier, sessions, recovery, what gathers and retains bodies),
// and the log and the bodies of package wal. Only
// what surrounds them is simulated: time, links, disks, clocks, clients, and an operator
// who does not always know what he does.
//
// A run has two phases. In the first, faults: members lose power with writes half done,
// links drop, repeat, reorder, damage and cut, disks are slow, stand still or fail a sync,
// clocks drift, processes pause, bytes go bad, the membership changes, leadership moves. No fault goes
// beyond what the protocol promises to survive: synced data stays, whoever is down. In the
// second phase everything heals, or only as many members as can decide, and then there
// must be progress in bounded time.
//
// Before the first phase the seed draws the settings: sizes, rates, latencies, limits, and
// which faults there are at all (swarm testing). Limits are often tiny, so that full
// queues, snapshots and segments' ends happen all the time.
//
// How to read: world.go (time, chance), run.go (the two phases), settings.go (what the seed
// draws), placement.go (protocols, and what is drawn of bodies), faults.go, client.go;
// member.go, apply.go, bodies.go, bodyworld.go, snapshot.go and machine.go (a member), disk.go and link.go (what it stands on); witness.go (what the judges of package check are told);
// campaign.go (many runs).
//
// Package scale, in a folder of its own, is not about faults but about speed: what more cores
// and more network cards would do.
//
// Imports: protocol, order, member, replica (files of snapshots, identity), wal, check, erasure.
package sim
