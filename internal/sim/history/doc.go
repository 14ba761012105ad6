// Package history knows what all clients of a simulated cluster asked for, what they were told, and what took
// effect, and judges that these agree. Whether reads and writes have an order is judged by package check, from
// what Resolve returns.
//
//   - operation.go: an operation and its command. history.go: all of them, tokens, and writes that were accepted.
package history
