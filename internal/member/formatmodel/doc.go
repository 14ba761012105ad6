// Package formatmodel is a model of how members agree on the format of the log and of frames
// (internal/member/cluster/formats.go) while their programs are exchanged, also for the earlier one. A search visits
// all its states. It is only tests: nothing imports it, and it shares no code with what ships.
//
// The model shows that a program never receives, and never finds in its directory, an entry in a format that it does
// not know. For that a member records a later format as soon as it has a link with a member that writes it, not when
// it applies the change, which may be much later; and when a member begins to write it, its links end, so that each
// has a handshake again: receivers refuse the first frame in the later format.
//
// In it: three members, two instances with logs of their own, elections, truncation, restarts with either program that
// forget the commit index, links that end at any time. The change of the format is an entry of the first instance. A
// message arrives at once or never. Not in it: changes of the members, snapshots (which have the format).
//
// How to read: model_test.go (the state and the rules), steps_test.go (what may happen), format_test.go (what must
// hold, and what is expected of the rules and of each variant).
//
// May import: internal/explore.
package formatmodel
