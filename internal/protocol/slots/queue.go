package slots

import "github.com/braidlog/braid/protocol"

// Pop takes the first of the entries that wait. When none is left, the memory of the last one is used again.
func Pop(queue []protocol.Entry) (e protocol.Entry, rest []protocol.Entry) {
	e = queue[0]
	queue[0] = protocol.Entry{} // release its memory
	if len(queue) == 1 {
		return e, queue[:0]
	}
	return e, queue[1:]
}
