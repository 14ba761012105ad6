package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/braidlog/braid"
)

// ofFit are the metrics of changes that the leader makes by itself.
var ofFit = newTable(nil,
	counter("braid_fit_changes_total", "Changes of the protocol, settings or leader that this member made as the "+
		"leader, because they fit the load better.",
		func(f *braid.FitStatus) float64 { return float64(f.Changes) }),
	counter("braid_fit_taken_back_total", "Such changes that took an earlier one back, because it did not gain enough.",
		func(f *braid.FitStatus) float64 { return float64(f.TakenBack) }),
)

var (
	fitMode = newFamily(prometheus.GaugeValue, "braid_fit_mode",
		"1 for the value of the setting fit: off, advise or on.", "mode")
	fitWish = newFamily(prometheus.GaugeValue, "braid_fit_wish",
		"Expected throughput under the change that the leader wishes for, as a factor of the present one. Without a "+
			"wish there is none.", "protocol")
)

// collectFit reads which change would fit the load better.
func collectFit(f *braid.FitStatus, emit Emit) {
	ofFit.collect(f, emit)
	for _, mode := range []braid.FitMode{braid.FitOff, braid.FitAdvise, braid.FitOn} {
		emit(fitMode, truth(f.Mode == mode), string(mode))
	}
	if f.Wish != nil {
		emit(fitWish, f.Wish.Gain, f.Wish.Protocol)
	}
}
