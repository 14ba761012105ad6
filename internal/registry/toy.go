//go:build toy

package registry

// Built with this tag, everything takes slotpaxos that serves.
func init() { Find("slotpaxos").OnlyFor = "" }
