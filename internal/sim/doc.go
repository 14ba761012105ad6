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
// How to read:
//   - Below: package world (time, planned events, the trace), package count (what is counted), package draw (chance),
//     package device (disks and links), package machine (the state machine), package judge (what is judged of decisions,
//     disks and messages), package history (what clients were told), package node (members, and what they run in),
//     package client (clients), package fault (a cluster in it, all faults, and what the seed draws).
//   - run.go (the two phases), campaign.go (many runs), mutants.go (search for mutants).
//   - calm.go (faults end), demands.go (what the second phase must bring about), and each demand: repairs.go,
//     progress.go, mergedemand.go, departures.go, samestate.go, pace.go (one client alone, where nothing fails), busy.go
//     (many clients), files.go (sizes of files).
//   - scenario_test.go (how scenarios are played by hand, and those of Raft), coded_test.go,
//     coded_change_test.go, lostbodies_test.go, weave_test.go, lag_test.go, lost_test.go, rot_test.go, sick_test.go
//     (other scenarios), run_test.go, mutants_test.go (campaigns), network_test.go (times of messages).
//
// Package scale, in a folder of its own, is not about faults but about speed: what more cores and
// more network cards would do.
package sim
