// Package relay forwards messages for a proposer, and gathers the answers (docs/internals/multi-paxos.md, relays). It
// decides who relays, which messages are sent through a relay, and what a relay reports. It does not depend on a
// core: a core describes its messages with a [Bundler].
//
// How to read:
//
//	settings.go  the number of groups
//	relay.go     at the proposer: groups, the relay of each group, equal messages as one
//	gather.go    at the relay: which members were sent a message, and what each has accepted
package relay
