// Package body decides which bodies a member holds, in which form, and how a body is made whole. It is pure, as
// package member is; nothing in it is safe for concurrent use.
//
//   - body.go: bodies cut for their receivers, and questions about them answered from the disk.
//   - gather.go, decode.go: a body made whole from the fragments of other members.
//   - retain.go, kept.go, holdercount.go: which bodies of an instance, and of all, are live and missing, what the
//     cores are told of it, and when a whole copy may become a row.
//   - bodies.go, bodyinbox.go: what is gathered, restored and trimmed now, within limits.
//   - bodyaccess.go, bodycache.go: reads of bodies; whole bodies in memory.
//
// May import: member, protocol, order, wal (records), erasure.
package body
