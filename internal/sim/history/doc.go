// Package history records the requests of all clients of a simulated cluster, their results and their effects, and
// checks that these agree. Package check judges whether reads and writes have an order, from the result of Resolve.
//
//   - operation.go: an operation and its command. history.go: all of them, tokens, and writes that were accepted.
package history
