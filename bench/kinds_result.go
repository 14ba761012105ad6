package bench

import "time"

// serverResults is the outcome of a [Contest], which is the same for each kind of load.
type serverResults[R serverResult] struct {
	Rounds  int         `json:"rounds"`
	Results []R         `json:"results"` // medians over the rounds
	Runs    [][]R       `json:"runs"`    // by server
	Machine MachineInfo `json:"machine"`
	Date    time.Time   `json:"date"`
}

// serverResult is the result of a load on one kind of server.
type serverResult interface {
	violated() (server string, violations []string)
}

func newServerResults[R serverResult](c *Contest, runs [][]R, median func([]R) R) serverResults[R] {
	out := serverResults[R]{Rounds: c.Rounds, Machine: DescribeMachine(c.Dir),
		Date: time.Now().UTC().Truncate(time.Second)}
	out.Runs, out.Results = medians(runs, median)
	return out
}

// setMedians sets figures of a result to their medians over some runs.
func setMedians[R any](result R, runs []R, figures func(R) []*float64) {
	for i, f := range figures(result) {
		var values []float64
		for _, r := range runs {
			values = append(values, *figures(r)[i])
		}
		*f = median(values)
	}
}

// Violation returns the first violation with its server, "" if there is none.
func (s *serverResults[R]) Violation() string {
	for _, r := range s.Results {
		if server, violations := r.violated(); len(violations) > 0 {
			return server + ": " + violations[0]
		}
	}
	return ""
}
