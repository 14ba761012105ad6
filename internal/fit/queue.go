package fit

// solve returns at which rate each member's clients get answers, if each command takes the given time for its path,
// and waits at the resources that it takes. Each member has as many commands in progress as it has now: a closed
// network of queues, by the approximation of Schweitzer and Bard (1979).
func (m *model) solve(paths []float64, d demand) []float64 {
	n := len(m.members)
	rates, there := make([]float64, n), make([][]float64, n) // commands of a member at each resource
	for i := range there {
		there[i] = make([]float64, len(m.full))
	}
	sum := make([]float64, len(m.full))
	for range rounds {
		for i := range m.members {
			inside := m.members[i].inside
			if inside <= 0 {
				continue
			}
			took := paths[i]
			for s, full := range m.full {
				if full > 0 && d[i][s] > 0 {
					took += m.stay(d[i][s]/full, sum[s], there[i][s], inside)
				}
			}
			rates[i] = share(inside, took)
		}
		for i := range m.members {
			for s, full := range m.full {
				if full <= 0 || d[i][s] <= 0 || m.members[i].inside <= 0 {
					continue
				}
				next := rates[i] * m.stay(d[i][s]/full, sum[s], there[i][s], m.members[i].inside)
				next = (next + there[i][s]) / 2
				sum[s] += next - there[i][s]
				there[i][s] = next
			}
		}
	}
	return rates
}

// rounds are enough for two digits.
const rounds = 40

// stay is how long a command is at a resource which it takes for some time, where others are already.
func (m *model) stay(takes, others, own, inside float64) float64 {
	return takes * (1 + max(0, others-own/max(1, inside)))
}
