// Package relay is what members do that pass messages on for a proposer (docs/internals/multi-paxos.md, relays). It decides who
// relays, which messages are sent through a relay, and what a relay reports. It knows no core: a core tells it what its
// messages are with a [Bundler].
//
// How to read:
//
//	settings.go  the number of groups
//	relay.go     at the proposer: groups, the relay of each group, equal messages as one
//	gather.go    at the relay: who was sent what, and what each has accepted
package relay
