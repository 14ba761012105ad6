// Package machine is the state machine of a simulated member, which checks the commands that it applies.
//
//   - machine.go: the effects of commands. command.go: their encoding. orders.go: the orders of commands, or of
//     the commands of each key.
//   - state.go: views of the state, and snapshots. durable.go: a state machine that keeps its state on disk.
//   - set.go: the state machines of a member, one for each group of keys.
package machine
