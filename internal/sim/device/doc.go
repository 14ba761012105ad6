// Package device simulates what a member stands on: its disk, and its links to other members. It knows
// neither time nor events, and draws nothing by itself: callers pass the time and the source of chance, and
// deliver frames when they arrive.
//
//   - disk.go, file.go: a disk that can lose power, and its open files.
//   - diskfault.go: failures, damage and lack of space, and copies of a disk.
//   - link.go: links and the network of all links. path.go: how long messages take.
package device
