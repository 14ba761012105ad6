package bench

import "slices"

// switchStep is a switch of a running cluster.
type switchStep struct {
	From, To string
	extra    bool // it only leads to the next step
}

// switchPath orders switches so that each but the first begins with the protocol with which the one before ends. Where
// the switches do not permit that, it adds others, as few as possible between switches that are connected.
func switchPath(pairs []switchStep) (path []switchStep) {
	next := map[string][]switchStep{}
	for _, p := range slices.Concat(pairs, balance(pairs)) {
		next[p.From] = append(next[p.From], p)
	}
	for _, p := range pairs {
		round := circuit(p.From, next)
		if len(round) == 0 {
			continue
		}
		if i := slices.IndexFunc(round, func(s switchStep) bool { return s.extra }); i >= 0 {
			round = slices.Concat(round[i+1:], round[:i]) // it need not come back
		}
		if end := len(path) - 1; end >= 0 && path[end].To != round[0].From {
			path = append(path, switchStep{From: path[end].To, To: round[0].From, extra: true})
		}
		path = append(path, round...)
	}
	return path
}

// balance returns switches to add so that as many end with each protocol as begin with it.
func balance(pairs []switchStep) (extra []switchStep) {
	var names []string
	begins := map[string]int{} // how many more begin than end
	for _, p := range pairs {
		names = append(names, p.From, p.To)
		begins[p.From]++
		begins[p.To]--
	}
	for _, from := range names {
		for _, to := range names {
			for begins[from] < 0 && begins[to] > 0 {
				extra = append(extra, switchStep{From: from, To: to, extra: true})
				begins[from]++
				begins[to]--
			}
		}
	}
	return extra
}

// circuit takes all switches that can be reached, and returns them as one closed path: an Eulerian circuit.
func circuit(from string, next map[string][]switchStep) (path []switchStep) {
	var visit func(string)
	visit = func(at string) {
		for len(next[at]) > 0 {
			s := next[at][0]
			next[at] = next[at][1:]
			visit(s.To)
			path = append(path, s)
		}
	}
	visit(from)
	slices.Reverse(path)
	return path
}
