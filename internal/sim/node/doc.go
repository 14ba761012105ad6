// Package node has the members of a simulated cluster: the code of production, on virtual time, with simulated disks
// and links. Judges check all that a member does and sends. The package does not depend on faults, clients and the
// phases of a run: it reports to them through an Observer.
//
//   - environment.go: the environment of members. observer.go: reports to others. settings.go, unequal.go: settings.
//   - member.go, inspect.go: a member with its disk, and queries. Running is the state that a crash loses. open.go:
//     starts. memberclock.go: its process, with a clock and pauses. line.go: delays inside a member.
//   - memberinstance.go, carry.go, reshape.go: its instances, and the output of their turns. apply.go, globallog.go:
//     the apply loop. reads.go: reads. operate.go: operations of operators.
//     drain.go: drained members, which are to lead nothing.
//   - fitting.go: what members measure, and the fitter of the leader. fulfil.go: changes that it makes.
//   - profile.go: the settings that members share. otherflags.go: flags that the log overrules.
//   - bodies.go, bodyworld.go, snapshot.go, writer.go: bodies, snapshots and the log. scrub.go, space.go: damage, and
//     space on its disk. doubt.go: hot copies of a disk.
//   - network.go, address.go, handshake.go: messages, addresses, and handshakes. describe.go: messages in a trace.
//   - witness.go, readpoints.go, sections.go, waste.go, prompt.go, limits.go: reports to judges, and judges
//     of a core.
package node
