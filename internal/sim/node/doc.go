// Package node has the members of a simulated cluster: the code of production, on virtual time, with simulated disks
// and links. Judges check all that a member does and sends. The package does not depend on faults, clients and the
// phases of a run: it reports to them through an Observer.
//
//   - environment.go: what members run in. observer.go: what is told to others. settings.go, unequal.go: settings.
//   - member.go, inspect.go: a member with its disk, and what others ask of it. What a crash loses is in Running.
//     open.go: starts. memberclock.go: its process, which has a clock and may stand still. line.go: delays inside a member.
//   - memberinstance.go, carry.go, reshape.go: its instances, and what it carries out for them. apply.go, globallog.go:
//     the part that applies. reads.go: reads. operate.go: what operators ask for.
//   - bodies.go, bodyworld.go, snapshot.go, writer.go: bodies, snapshots and the log. scrub.go, space.go: damage, and
//     space on its disk. doubt.go: copies of a disk that ran.
//   - network.go, address.go, handshake.go: messages, where members are, and handshakes. describe.go: messages in a trace.
//   - witness.go, readpoints.go, sections.go, waste.go, prompt.go, limits.go: what judges are told, and what is judged
//     of a core.
package node
