package scale

import (
	"math"
	"time"
)

// Measurement is the performance of a cluster on this machine. All members and the load share the machine, so Config
// has Shared and the machine's cores. A figure of 0 was not measured.
type Measurement struct {
	Name       string        `json:"name"`
	Config     Config        `json:"-"` // its Costs are ignored
	Throughput float64       `json:"throughput_per_s"`
	P50        time.Duration `json:"p50_ns,omitempty"`
	CPU        time.Duration `json:"cpu_ns_per_op,omitempty"`
}

// Comparison is a measurement together with the model's result.
type Comparison struct {
	Measurement
	Model Result `json:"model"`
	// Off is the model's figure divided by the measured one: 1 is exact. 0: not measured.
	ThroughputOff float64 `json:"throughput_off"`
	P50Off        float64 `json:"p50_off,omitempty"`
	CPUOff        float64 `json:"cpu_off,omitempty"`
}

// Compare runs the model for each measurement.
func Compare(c Costs, measured []Measurement) ([]Comparison, error) {
	out := make([]Comparison, 0, len(measured))
	for _, m := range measured {
		m.Config.Costs = c
		r, err := Run(m.Config)
		if err != nil {
			return nil, err
		}
		out = append(out, Comparison{
			Measurement: m, Model: *r, ThroughputOff: off(r.Throughput, m.Throughput),
			P50Off: off(float64(r.P50), float64(m.P50)), CPUOff: off(float64(r.CPU), float64(m.CPU)),
		})
	}
	return out, nil
}

func off(model, measured float64) float64 {
	if measured == 0 {
		return 0
	}
	return model / measured
}

const (
	// leastFactor and mostFactor bound the result of Fit.
	leastFactor, mostFactor = 1. / 4, 16.
	fitSteps                = 10 // halvings: within half a percent
)

// Fit returns the costs with the factor that makes the model's CPU time of a command correct on average: the geometric
// mean of CPUOff is 1. Throughput would not do: clusters here also wait for the disk, and for whatever else the machine
// does. Nothing else in the model is fitted.
func Fit(c Costs, measured []Measurement) (Costs, error) {
	low, high := leastFactor, mostFactor
	for range fitSteps {
		c.Factor = math.Sqrt(low * high)
		all, err := Compare(c, measured)
		if err != nil {
			return c, err
		}
		sum := 0.
		for i := range all {
			if all[i].CPUOff > 0 {
				sum += math.Log(all[i].CPUOff)
			}
		}
		if sum < 0 { // too little
			low = c.Factor
		} else {
			high = c.Factor
		}
	}
	return c, nil
}
