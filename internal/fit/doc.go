// Package fit decides which protocol, settings and leader fit today's load. A [Fitter] runs on each member, and decides
// on the one that leads the global log. It is pure: each second it takes in what all members measured, and returns what
// each possible profile would cost, which change it wishes for, and whether to make the change now.
//
//   - report.go: what a member measures.
//   - heard.go: the newest reports of all members.
//   - view.go: what the fitter knows of the cluster.
//   - wish.go: what it decides.
//   - published.go: what it decides, as all members know it.
//   - load.go: today's load, and which member is missing or slow, as the reports say.
//   - candidate.go: the profiles that it compares.
//   - cost.go: the model of costs: throughput under today's load, what it knows besides the reports, and the paths of
//     messages.
//   - demand.go: what a command takes of each member's resources.
//   - limit.go: what these resources carry.
//   - queue.go: what comes of both.
//   - compare.go: all candidates with their costs, and the one to wish for.
//   - avoid.go: the changes that were taken back, as the profile has them.
//   - fitter.go: a step, and patience: how long a gain must last, and what else a change waits for.
//   - want.go: the rules by which a change is wished for.
//   - trial.go: what a change gained, and when it is taken back.
//   - mutant.go: the rules that can be broken on purpose.
//
// May import: protocol (with setting and common), internal/mutant.
package fit
