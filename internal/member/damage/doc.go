// Package damage decides what a member does about damage on its disk, and how much space it needs there. It is pure,
// as package member is; nothing in it is safe for concurrent use.
//
//   - damage.go: what is done about a damaged log or snapshot, and how many damaged places are known.
//   - scrub.go: log, snapshots and bodies are read again and again to find damage.
//   - diskhealth.go, diskneed.go: whether writes to the disk are slow; how much space the disk must have.
//
// May import: member, body, protocol, order, wal (records).
package damage
