// Package mapkv is a small key-value service over the library: a map as state machine, HTTP in front of it. The
// papers' experiments with clients use it, as do measurements of a protocol with an application but without the cost
// of an etcd-compatible one. Protocols that order only conflicting commands can run it too: a command touches one
// key.
//
//	GET    /kv/KEY         the value, linearizable; with ?stale as this member has it; with
//	                       ?ordered the read is a command in the log, as a write is
//	PUT    /kv/KEY         the body becomes the value
//	POST   /kv/KEY         the body is appended to the value
//	DELETE /kv/KEY         the key goes
//	POST   /append         the body goes into the log as a command, and nowhere else;
//	                       answers with its position in the log
//	GET    /status         this member, the leader and the members, as JSON
//
// Values from a threshold on are not in the map: they are bodies, which the map references, and which members keep
// whole or in fragments according to the node's options.
//
// Status codes: 200 and 204 done; 404 no such key; 400 and 413 invalid requests, without effect; 503 refused without
// effect, may be repeated; 504 no answer in time, a write may or may not take effect.
//
// Read it in this order: command.go (what goes into the log), value.go, machine.go and snapshot.go (the state
// machine), http.go (the service), member.go (a node with its service).
//
// The package may import the root package, and protocol for the types of the contract.
package mapkv
