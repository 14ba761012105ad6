// Package sim simulates clusters. All events of a run follow from one seed, and judges check them.
//
// The members run the code of production: the protocol's core, package member (instance, applier, sessions, recovery,
// the keeper of bodies), the files of package datadir, and the log and the bodies of package wal. Only their
// environment is simulated: time, links, disks, clocks, clients, and an operator, who sometimes makes mistakes.
//
// A run has two phases. In the first phase there are faults. Members lose power in the middle of writes. Links lose,
// repeat, reorder and damage messages, and are cut. Disks are slow, stall, get full or fail operations. Clocks drift,
// and processes are paused. Bytes on disks are damaged, and whole disks are lost. The operator changes the membership
// and transfers leadership. No fault exceeds those that the protocol tolerates: a power failure never loses synced
// data, for example. In the second phase all faults end. All members are up, or only a quorum. Then there must be
// progress in bounded time.
//
// Before the first phase the settings are drawn from the seed: sizes, rates, latencies, limits, and the kinds of
// faults in the run (swarm testing). Limits are often tiny, so that full queues, snapshots and ends of segments are
// frequent.
//
// How to read:
//   - Below: package event (scheduled events), package world (time, the trace), package count (counters), package
//     draw (chance), package device (disks and links), package machine (the state machine), package judge (judges of
//     decisions, disks and messages), package history (requests and results), package node (members, and their
//     environment), package client (clients), package fault (the cluster with all its faults, and drawn settings).
//     Package diagram draws the trace.
//   - run.go (the two phases), campaign.go (many runs), mutants.go (search for mutants).
//   - calm.go (faults end), demands.go (the demands of the second phase), and each demand: repairs.go,
//     progress.go, mergedemand.go, departures.go, samestate.go, pace.go (one client alone, without failures),
//     busy.go (many clients), draindemand.go, files.go (sizes of files).
//   - scenario_test.go (scripts of scenarios, and those of Raft), coded_test.go,
//     coded_change_test.go, lostbodies_test.go, weave_test.go, lag_test.go, lost_test.go, rot_test.go, sick_test.go
//     (other scenarios), run_test.go, mutants_test.go (campaigns), network_test.go (delays of messages).
//
// Package scale is not about faults but about performance: the effect of more cores and more network cards.
package sim
