package member

// ReadQueue is the reads for which an instance has not been asked yet. Not safe for concurrent
// use.
type ReadQueue struct {
	// gathering is the group that new readers join. Only the first instance has one; nil if nobody
	// waits.
	gathering *ReadGroup
	// asked are groups for which the instance is to be asked for its part of a read point.
	asked []*ReadGroup
	// retired says that the instance is not in force any more. It is asked nothing then.
	retired bool
}

// maxReadGroups is how many groups may wait for read points at once. Later reads join the next
// group.
const maxReadGroups = 2

// Gathering reports whether there is a group that readers may join.
func (q *ReadQueue) Gathering() bool { return q.gathering != nil }

// Gather begins a group. Readers join it until it is taken.
func (q *ReadQueue) Gather(g *ReadGroup) { q.gathering = g }

// Hand puts in a group, for which the instance is asked for its part of the read point. It reports
// false if the instance is retired. Then other instances are to be asked.
func (q *ReadQueue) Hand(g *ReadGroup) bool {
	if !q.retired {
		q.asked = append(q.asked, g)
	}
	return !q.retired
}

// Take takes out what is to be asked for now. under is how many groups wait for read points
// already.
func (q *ReadQueue) Take(under int) (asked []*ReadGroup, gathered *ReadGroup) {
	asked, q.asked = q.asked, nil
	if q.gathering != nil && under < maxReadGroups {
		gathered, q.gathering = q.gathering, nil
	}
	return asked, gathered
}

// Retire ends the queue of an instance that is not in force any more. It returns the groups that
// were to be asked for.
func (q *ReadQueue) Retire() (asked []*ReadGroup) {
	asked, q.asked, q.retired = q.asked, nil, true
	return asked
}

// Close takes out everything.
func (q *ReadQueue) Close() (groups []*ReadGroup) {
	groups = q.asked
	if q.gathering != nil {
		groups = append(groups, q.gathering)
	}
	q.gathering, q.asked = nil, nil
	return groups
}
