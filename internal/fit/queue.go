package fit

import "math"

// solve returns at which rate each member's clients get answers, if each command takes the given time for its path,
// and waits at the resources that it takes. Each member has as many commands in progress as it has now: a closed
// network of queues, by the approximation of Schweitzer and Bard (1979).
func (m *model) solve(paths []float64, d demand) []float64 {
	rates := make([]float64, len(m.members))
	lines := m.lines(d)
	for range maxRounds {
		moved := 0.0
		for i := range m.members {
			inside := m.members[i].inside
			if inside <= 0 {
				continue
			}
			took := paths[i]
			for _, q := range lines {
				took += q.stay(i, inside)
			}
			before := rates[i]
			rates[i] = share(inside, took)
			moved = max(moved, math.Abs(rates[i]-before)/max(rates[i], before))
		}
		if moved < settled {
			break
		}
		for _, q := range lines {
			for i := range m.members {
				if inside := m.members[i].inside; inside > 0 {
					next := (rates[i]*q.stay(i, inside) + q.there[i]) / 2
					q.sum += next - q.there[i]
					q.there[i] = next
				}
			}
		}
	}
	return rates
}

// Rounds end when no rate moves by more than a thousandth.
const maxRounds, settled = 40, 0.001

// line is the queue at a resource.
type line struct {
	takes []float64 // the resource's time for a command of each member
	there []float64 // how many commands of each member are there
	sum   float64
}

// lines are those at the resources that commands take, as far as it is known what these carry.
func (m *model) lines(d demand) (all []*line) {
	for s, full := range m.full {
		q := &line{}
		for i := range d {
			if full > 0 && d[i][s] > 0 {
				if q.takes == nil {
					q.takes, q.there = make([]float64, len(d)), make([]float64, len(d))
				}
				q.takes[i] = d[i][s] / full
			}
		}
		if q.takes != nil {
			all = append(all, q)
		}
	}
	return all
}

// stay is how long a command of a member is there, which finds the others there.
func (q *line) stay(i int, inside float64) float64 {
	return q.takes[i] * (1 + max(0, q.sum-q.there[i]/max(1, inside)))
}
