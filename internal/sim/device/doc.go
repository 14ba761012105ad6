// Package device simulates the disk of a member and its links to other members. It has no time, events or random
// numbers of its own: callers pass the time and the source of chance, and deliver frames when they arrive.
//
//   - disk.go, file.go: a disk that can lose power, and its open files.
//   - diskfault.go: failures, damage, full disks, and copies of a disk.
//   - link.go: links and the network of all links. path.go: the delays of messages.
package device
