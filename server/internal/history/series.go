package history

// series holds the newest values of a sequence. The first one has number 1.
type series[T any] struct {
	most  int // values to hold
	held  []T // a ring once it is full
	start int // the oldest of held
	last  uint64
}

func (s *series[T]) add(v T) {
	s.last++
	if len(s.held) < s.most {
		s.held = append(s.held, v)
		return
	}
	s.held[s.start] = v
	s.start = (s.start + 1) % s.most
}

// since returns a copy of the held values after number n, oldest first, and whether none between was lost.
func (s *series[T]) since(n uint64) (values []T, complete bool) {
	oldest := s.last - uint64(len(s.held)) + 1
	complete = n+1 >= oldest && n <= s.last
	if !complete {
		n = oldest - 1
	}
	for ; n < s.last; n++ {
		values = append(values, s.held[(s.start+int(n+1-oldest))%len(s.held)])
	}
	return values, complete
}

// take replaces or continues the values by those of another series, the last of which has number last.
func (s *series[T]) take(values []T, last uint64, anew bool) {
	if anew {
		s.held, s.start = nil, 0
	}
	for _, v := range values {
		s.add(v)
	}
	s.last = last
}
