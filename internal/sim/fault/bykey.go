package fault

// Some protocols order commands only where they have a key in common. There members' logs differ, and so do the positions of
// their commands. The judges look at each key as they look at the whole log elsewhere: its commands are numbered by its
// version. Whether a decision is kept the state machines tell, and the history.

// fix leaves out what a protocol cannot do whose members do not change: a member that has lost its disk cannot be replaced.
func (s *Settings) fix() {
	var none []*Fault
	if s.Protocol.Core.Judged.Fixed {
		s.Resize = false
		none = append(none, faultChange, faultWipe, faultOldDisk, faultHotCopy)
	}
	if s.ByKey() {
		s.Durable = false // such a state cannot stay where members met last
	}
	for _, f := range none {
		s.Faults[f] = 0
	}
}
