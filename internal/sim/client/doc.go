// Package client has the clients of a simulated cluster: their requests, the members that they ask, and their checks
// of the responses. It depends on members and the history of operations, not on faults or the phases of a run.
//
//   - settings.go: the settings of clients.
//   - client.go: one client, its operations, and its checks of responses.
//   - load.go: the choice of a member, and clients that act together.
//   - pipe.go: clients that propose without waiting. early.go, tokens.go: responses before a command is applied, and
//     the use of their tokens. withdraw.go: clients that withdraw a command.
package client
