package fault

// Some protocols order only commands that have a key in common. There the logs of members differ, and so do the
// positions of commands. The judges check each key as they check the whole log elsewhere: the key's version numbers
// its commands. The state machines and the history show whether decisions are kept.

// fix turns off the faults that a protocol with fixed members cannot tolerate: a member that has lost its disk cannot
// be replaced.
func (s *Settings) fix() {
	var none []*Fault
	if s.Protocol.Core.Judged.Fixed {
		s.Resize = false
		none = append(none, faultChange, faultWipe, faultOldDisk, faultHotCopy)
	}
	if s.ByKey() {
		s.Durable = false // such a state does not stay at the command at which members met last (epaxos.md, rule 12)
	}
	for _, f := range none {
		s.Faults[f] = 0
	}
}
