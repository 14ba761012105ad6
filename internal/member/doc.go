// Package member is what the packages below it share: the rules by which one member of a cluster decides everything
// around its protocols. They have no goroutine, channel, lock, clock, file or socket. Package replica executes them
// in production, package sim in the simulator. Along the path of a command:
//
//   - intake: commands and reads that wait for an instance.
//   - instance: a protocol core from turn to turn.
//   - apply: the order, at most once, the state machine, and who waits for it.
//   - body: bodies: framing, gathering, keeping, reading.
//   - snapshot: which snapshots are sent, received and requested.
//   - damage: what scrubbing found on the disk, and how much space the disk needs.
//   - lifecycle: instances begin, retire and recover.
//   - cluster: who the other members are, with whom there is a link, and operations of operators.
//   - membertest: what tests of these packages share.
//
// Its own files:
//
//   - machine.go, errors.go, lineages.go, token.go: the state machine, and errors that programs see.
//   - meta.go, session.go, sections.go, offer.go: what a snapshot says besides the state.
//   - records.go, logkind.go, found.go: records of the log on disk; which kind of log it is; what a start read of it.
//   - fault.go: what an error of reading means.
//   - membership.go: the memberships of several instances as one.
//   - operating.go, limits.go: settings of operations, and limits that several packages keep to.
//   - clock.go: how an event loop reads the time.
//   - mutant.go: rules broken on purpose, for the simulator to find.
//
// May import: protocol, order, wal (what a record is), transport (why a link is refused).
package member
