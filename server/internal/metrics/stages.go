package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/braidlog/braid"
)

const (
	stageName = "braid_request_stage_seconds"
	stageHelp = "How long requests took, stage by stage: docs/using/operations.md, Why a request was slow."
)

var stageLabels = []string{"request", "stage"}

// inLog are the stages in the log. It measures them by batches, and reads by groups.
var inLog = newFamily(prometheus.CounterValue, stageName, stageHelp, stageLabels...)

// stagesInLog are the stages of a log, by request and stage.
var stagesInLog = []struct {
	request, stage string
	of             func(*braid.StageStats) *braid.Latency
}{
	{"write", "queue", func(s *braid.StageStats) *braid.Latency { return &s.Queue }},
	{"write", "append", func(s *braid.StageStats) *braid.Latency { return &s.Append }},
	{"write", "replicate", func(s *braid.StageStats) *braid.Latency { return &s.Replicate }},
	{"write", "order", func(s *braid.StageStats) *braid.Latency { return &s.Order }},
	{"write", "apply", func(s *braid.StageStats) *braid.Latency { return &s.Apply }},
	{"read", "queue", func(s *braid.StageStats) *braid.Latency { return &s.ReadQueue }},
	{"read", "confirm", func(s *braid.StageStats) *braid.Latency { return &s.ReadConfirm }},
	{"read", "wait", func(s *braid.StageStats) *braid.Latency { return &s.ReadWait }},
}

// collectStages reads the stages in the log.
func collectStages(s *braid.StageStats, ch chan<- prometheus.Metric) {
	for i := range stagesInLog {
		stage := &stagesInLog[i]
		ch <- distribution(inLog, stage.of(s), stage.request, stage.stage)
	}
}

// distribution is a distribution of the log as a metric.
func distribution(f *family, l *braid.Latency, labels ...string) prometheus.Metric {
	last, count, buckets := len(l.Counts)-1, uint64(0), map[float64]uint64{}
	for i, n := range l.Counts {
		if count += n; i < last {
			buckets[braid.LatencyBound(i).Seconds()] = count
		}
	}
	return prometheus.MustNewConstHistogram(f.Desc, count, l.Sum.Seconds(), buckets, labels...)
}

// stages are the stages in the server, before the log and after it.
type stages struct {
	all                  *prometheus.HistogramVec
	checkWrite, answer   prometheus.Observer
	checkRead, readLocal prometheus.Observer
}

func newStages() *stages {
	bounds := make([]float64, len(braid.Latency{}.Counts)-1)
	for i := range bounds {
		bounds[i] = braid.LatencyBound(i).Seconds()
	}
	all := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: stageName, Help: stageHelp, Buckets: bounds},
		stageLabels)
	return &stages{
		all: all, checkWrite: all.WithLabelValues("write", "check"), answer: all.WithLabelValues("write", "answer"),
		checkRead: all.WithLabelValues("read", "check"), readLocal: all.WithLabelValues("read", "read"),
	}
}

// Wrote counts how long a write was in the server until the log had it, and since the log had its result.
func (m *Counts) Wrote(check, answer time.Duration) {
	m.observed.stages.checkWrite.Observe(check.Seconds())
	m.observed.stages.answer.Observe(answer.Seconds())
}

// Read is Wrote for a linearizable read, since the state could be read.
func (m *Counts) Read(check, read time.Duration) {
	m.observed.stages.checkRead.Observe(check.Seconds())
	m.observed.stages.readLocal.Observe(read.Seconds())
}
