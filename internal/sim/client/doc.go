// Package client is the clients of a simulated cluster: what they ask members for, whom they ask, and how they judge
// the answers. It knows members and the history of operations, and nothing of faults or the phases of a run.
//
//   - settings.go: what clients have in common.
//   - client.go: one client, its operations, and what it judges of answers.
//   - load.go: which member a client asks, and clients that ask together.
//   - pipe.go: clients that propose without waiting. early.go, tokens.go: answers before a command is applied, and what
//     their tokens are used for. withdraw.go: clients that withdraw a command.
package client
