package intake

// ReadQueue is the reads for which an instance has not been asked yet. Not safe for concurrent
// use.
type ReadQueue struct {
	// gathering are the groups that new readers join: readers of the first one are plain, those of the second one want
	// barriers. Only the first instance has them; nil if no one waits. A barrier may take far longer, so plain readers
	// do not wait for it.
	gathering [2]*ReadGroup
	// asked are groups for which the instance is to be asked for its part of a read index.
	asked []*ReadGroup
	// retired says that the instance is not active any more. It is asked nothing then.
	retired bool
}

// maxReadGroups is how many groups of a kind may wait for read indexes at once. Later reads join the next group.
const maxReadGroups = 2

// kindOf is where what concerns a group stands: see ReadQueue.gathering.
func kindOf(barrier bool) int {
	if barrier {
		return 1
	}
	return 0
}

// Gathering reports whether there is a group that readers may join who want a barrier, or who do not.
func (q *ReadQueue) Gathering(barrier bool) bool { return q.gathering[kindOf(barrier)] != nil }

// Gather begins a group. Readers join it until it is taken.
func (q *ReadQueue) Gather(g *ReadGroup) { q.gathering[kindOf(g.Barrier)] = g }

// Hand puts in a group, for which the instance is asked for its part of the read index. It reports false if the
// instance is retired. Then other instances are to be asked.
func (q *ReadQueue) Hand(g *ReadGroup) bool {
	if !q.retired {
		q.asked = append(q.asked, g)
	}
	return !q.retired
}

// Take takes out what is to be asked for now. asking is how many groups of each kind wait for read indexes already: see
// Applied.Asking.
func (q *ReadQueue) Take(asking [2]int) (asked []*ReadGroup, gathered [2]*ReadGroup) {
	asked, q.asked = q.asked, nil
	for i := range q.gathering {
		if asking[i] < maxReadGroups {
			gathered[i], q.gathering[i] = q.gathering[i], nil
		}
	}
	return asked, gathered
}

// Retire ends the queue of an instance that is not active any more. It returns the groups for which others are to be
// asked: those that were to be asked for, and those that gather readers, if it was the first instance.
func (q *ReadQueue) Retire() (groups []*ReadGroup) {
	q.retired = true
	return q.Close()
}

// Retired reports whether the instance is not active any more. Readers join a group of another one.
func (q *ReadQueue) Retired() bool { return q.retired }

// Close takes out everything.
func (q *ReadQueue) Close() (groups []*ReadGroup) {
	groups = q.asked
	for i, g := range q.gathering {
		if g != nil {
			groups = append(groups, g)
		}
		q.gathering[i] = nil
	}
	q.asked = nil
	return groups
}
