// Package replica connects the packages of a member. It runs the protocol instances of one member, makes durable
// what they want durable, sends their messages, merges what they commit, and applies it to a state
// machine.
//
// Package member decides everything that can be decided without waiting. It runs in the simulator
// as it runs here. This package has the code that waits:
//
//   - replica.go opens and closes a member,
//   - program.go is what instances have of their core,
//   - loop.go is an instance's event loop, carry.go carries out what its turns want,
//   - router.go connects the loops of one member, reshape.go begins and retires them,
//   - applyloop.go and applyworld.go are the goroutine that applies,
//   - propose.go, proposewith.go, wait.go, client.go, read.go and tokens.go serve clients, stages.go notes when their
//     proposals and reads passed which stage, watch.go serves those who watch, within.go refuses callers that wait for
//     themselves, admin.go, operate.go, drain.go and probe.go serve operators and other members,
//   - fitting.go has the leader's fitter decide which protocol, settings and leader fit the load, and carries that out;
//     measure.go measures this member for it, reports.go tells the others what was measured,
//   - descriptors.go waits where the process has no descriptor left,
//   - transfers.go measures snapshots, exchange.go sends and receives them, snapshot.go writes one on request,
//   - links.go connects to the transport, joiner.go answers who is to become a member,
//   - bodies.go, bodyworld.go, bodyread.go and kept.go run what keeps the bodies,
//   - found.go begins a directory with a state,
//   - salvage.go takes from a directory what is left when a majority is lost permanently,
//   - who.go is cluster.Handshakes as links and event loops use it, origin.go compares origins over links that are
//     there.
//
// May import: member, datadir, protocol, order, fit, wal, transport, erasure, internal/sys.
package replica
