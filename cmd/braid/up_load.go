package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/workload"
	"github.com/braidlog/braid/internal/control"
)

// Limits and settings of loads that the dashboard starts.
const (
	maxLoadClients = 1000
	maxLoadValue   = 1 << 20 // bytes
	loadConns      = 30
	loadKeys       = 10_000
	// loadPrefix is that of the keys of all loads. Each has keys of its own, which are removed afterwards.
	loadPrefix = "braid-up-load/"
)

// removalTimeout bounds the removal of keys while the cluster is about to stop.
const removalTimeout = 3 * time.Second

// upLoad is a load on the cluster, with its rates. It may be used concurrently.
type upLoad struct {
	spec control.LoadSpec
	load *bench.KVLoad
	halt context.CancelFunc

	mu      sync.Mutex
	running bool
	at      time.Time // when the rates were computed last
	counts  bench.KVCounts
	writes  float64 // per second
	reads   float64
}

// loadConfig returns the configuration of a load on some members.
func loadConfig(endpoints []string, l control.LoadSpec) (c bench.KVConfig, err error) {
	switch {
	case l.Clients < 1 || l.Clients > maxLoadClients:
		err = badLoad(fmt.Sprintf("clients are 1 to %d", maxLoadClients))
	case l.ValueBytes < 1 || l.ValueBytes > maxLoadValue:
		err = badLoad(fmt.Sprintf("a value has 1 to %d bytes", maxLoadValue))
	case !(l.Reads >= 0 && l.Reads <= 1):
		err = badLoad("reads are a share, 0 to 1")
	}
	prefix := loadPrefix + rand.Text()[:8] + "/"
	return bench.KVConfig{Endpoints: endpoints, Clients: l.Clients, Conns: min(l.Clients, loadConns),
		KeyPrefix: prefix, KeySize: len(prefix) + len("0000"), RemoveKeys: true,
		Workload: workload.Spec{Mix: workload.Ratio(1 - l.Reads), KeySpace: loadKeys,
			Values: workload.Fixed(l.ValueBytes), Seed: 1},
	}, err
}

func badLoad(text string) error { return &control.Error{Status: http.StatusBadRequest, Text: text} }

// StartLoad implements [control.Cluster].
func (o *operator) StartLoad(spec control.LoadSpec, token string) error {
	c, err := loadConfig(o.endpoints(true), spec)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.closed(); err != nil {
		return err
	}
	if o.load.state().Running {
		return &control.Error{Status: http.StatusConflict, Text: "a load runs already: stop it first"}
	}
	user := withToken(o.ctx, token)
	load, err := bench.StartKV(user, c)
	if err != nil {
		return badLoad(err.Error())
	}
	ctx, halt := context.WithCancel(user)
	o.load = &upLoad{spec: spec, load: load, halt: halt, running: true, at: time.Now()}
	o.lastError = ""
	running := o.load
	o.work.Go(func() {
		if err := running.run(ctx, user); err != nil {
			o.fail(err)
		}
	})
	return nil
}

// StopLoad implements [control.Cluster].
func (o *operator) StopLoad() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.load.state().Running {
		return &control.Error{Status: http.StatusConflict, Text: "no load runs"}
	}
	o.load.halt()
	o.lastError = ""
	return nil
}

// run computes the rates each second until ctx ends or the load is refused. Then it removes the keys; once the
// cluster's ctx has ended, within removalTimeout.
func (l *upLoad) run(ctx, cluster context.Context) (err error) {
	defer l.halt()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for running := true; running; {
		select {
		case now := <-tick.C:
			l.measure(now)
		case <-ctx.Done():
			running = false
		case <-l.load.Done():
			err, running = l.load.Err(), false
		}
	}
	l.mu.Lock()
	l.running, l.writes, l.reads = false, 0, 0
	l.mu.Unlock()
	removing, cancel := context.WithCancel(context.WithoutCancel(cluster))
	defer cancel()
	defer context.AfterFunc(cluster, func() { time.AfterFunc(removalTimeout, cancel) })()
	return errors.Join(err, l.load.Stop(removing))
}

// measure computes the rates since it was called last.
func (l *upLoad) measure(now time.Time) {
	counts := l.load.Counts()
	l.mu.Lock()
	defer l.mu.Unlock()
	seconds := now.Sub(l.at).Seconds()
	if seconds <= 0 {
		return
	}
	l.writes = float64(counts.Writes-l.counts.Writes) / seconds
	l.reads = float64(counts.Reads-l.counts.Reads) / seconds
	l.counts, l.at = counts, now
}

// state is the load as the dashboard shows it. l may be nil: there was none.
func (l *upLoad) state() control.LoadState {
	if l == nil {
		return control.LoadState{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return control.LoadState{Running: l.running, LoadSpec: l.spec, WritesPerS: l.writes, ReadsPerS: l.reads,
		Failed: l.counts.Failed}
}
