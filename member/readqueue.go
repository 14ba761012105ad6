package member

// ReadQueue is the reads for which an instance has not been asked yet. Not safe for concurrent use.
type ReadQueue struct {
	// gathering is the group that new readers join; the first instance's, nil if nobody waits.
	gathering *ReadGroup
	// asked are groups for which the instance's part of a read point is to be got.
	asked []*ReadGroup
	// retired says that the instance is not in force any more: it is asked nothing then.
	retired bool
}

// maxReadGroups is how many groups may be under way; later reads gather in the next one.
const maxReadGroups = 2

// Gathering reports whether there is a group that readers may join.
func (q *ReadQueue) Gathering() bool { return q.gathering != nil }

// Gather begins a group, which readers join until it is taken.
func (q *ReadQueue) Gather(g *ReadGroup) { q.gathering = g }

// Hand has the instance asked for its part of a group's read point. It reports false if the
// instance is retired: then others are to be asked.
func (q *ReadQueue) Hand(g *ReadGroup) bool {
	if !q.retired {
		q.asked = append(q.asked, g)
	}
	return !q.retired
}

// Take takes out what is to be asked now, while so many groups are under way.
func (q *ReadQueue) Take(under int) (asked []*ReadGroup, gathered *ReadGroup) {
	asked, q.asked = q.asked, nil
	if q.gathering != nil && under < maxReadGroups {
		gathered, q.gathering = q.gathering, nil
	}
	return asked, gathered
}

// Retire ends the queue of an instance that is not in force any more.
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
