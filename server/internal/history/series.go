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

// oldest is the number of the oldest held value; last+1: none is held.
func (s *series[T]) oldest() uint64 { return s.last - uint64(len(s.held)) + 1 }

// has reports whether all values after number n are held.
func (s *series[T]) has(n uint64) bool { return n+1 >= s.oldest() && n <= s.last }

// since returns a copy of the values after number n, or of all held ones if some of these are held no more, oldest
// first.
func (s *series[T]) since(n uint64) (values []T) {
	oldest := s.oldest()
	if !s.has(n) {
		n = oldest - 1
	}
	for ; n < s.last; n++ {
		values = append(values, s.held[(s.start+int(n+1-oldest))%len(s.held)])
	}
	return values
}

// extend appends values, the last of them with number last. With reset they replace the held ones.
func (s *series[T]) extend(values []T, last uint64, reset bool) {
	if reset {
		s.held, s.start = nil, 0
	}
	for _, v := range values {
		s.add(v)
	}
	s.last = last
}
