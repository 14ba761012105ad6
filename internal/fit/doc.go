// Package fit decides which protocol, settings and leader fit today's load. A [Fitter] runs on each member, and decides
// on the one that leads the global log. It is pure: each second it takes in what all members measured, and returns what
// each possible profile would cost, which change it wishes for, and whether to make the change now.
//
//   - report.go: what a member measures.
//   - view.go: what the fitter knows of the cluster.
//   - wish.go: what it decides.
//   - published.go: what it decides, as all members know it.
//   - candidate.go: the profiles that it compares.
//   - cost.go: the model of costs: throughput under today's load, and what limits it.
//   - avoid.go: the changes that were taken back, as the profile has them.
//   - fitter.go: patience: how long a gain must last, what is measured after a change, when it is taken back.
//   - mutant.go: the rules that can be broken on purpose.
//
// May import: protocol (with setting and common), internal/mutant.
package fit
