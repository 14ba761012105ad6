package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/braidlog/braid/bench"
)

// contest runs Kubernetes on stores, in rounds.
type contest struct {
	bench.Contest
	programs *programs
	logs     string // folder for logs, which exists; empty: they are removed
	duration time.Duration
	down     time.Duration // from the kill of a member to its restart
	pause    time.Duration // from its return to the next kill
	workers  int
	rate     float64 // writes a second
	work     amounts
	progress func(format string, args ...any)
}

// validate returns an error that describes the first invalid setting.
func (c *contest) validate() error {
	switch {
	case c.Rounds < 1 || c.workers < 1 || c.work.deployments < 1 || c.work.replicas < 1 || c.work.namespaces < 0:
		return errors.New("there must be at least one round, client, Deployment and replica")
	case c.duration <= 0 || c.down <= 0 || c.pause <= 0:
		return errors.New("all times must be positive")
	case c.rate < 0.1 || c.rate > 1e6:
		return fmt.Errorf("%v writes a second: must be between 0.1 and a million", c.rate)
	}
	return c.ValidateEtcd()
}

// settleTimeout bounds what follows the load: the watch catches up, and the controller manager finishes.
const settleTimeout = 3 * time.Minute

// run runs all rounds. When ctx ends, or a run fails, the result is of the runs before.
func (c *contest) run(ctx context.Context) (*Results, error) {
	runs, err := bench.Alternate(ctx, len(c.Servers), c.Rounds, func(ctx context.Context, i int) (*Run, error) {
		name := c.Servers[i]
		r, err := c.runOne(ctx, name)
		if err != nil {
			return nil, err
		}
		c.progress("%s: %s", name, r)
		return r, nil
	})
	return newResults(c, runs), err
}

// runOne runs Kubernetes on a new cluster of a store.
func (c *contest) runOne(ctx context.Context, store string) (r *Run, err error) {
	var p *plane
	err = c.withPlane(ctx, store, 0, func(servers *bench.Servers, started *plane) (err error) {
		p = started
		r, err = c.newExercise(servers, p).run(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.ManagerRestarts = p.restarts
	return r, nil
}

// withPlane starts a control plane on a new cluster of a store, and stops both after use. Port 0 is a free one.
func (c *contest) withPlane(ctx context.Context, store string, port int, use func(*bench.Servers, *plane) error) error {
	return c.With(ctx, store, nil, func(servers *bench.Servers) (err error) {
		dir, err := os.MkdirTemp(c.Dir, "kubernetes-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		logs := dir
		if c.logs != "" {
			if logs, err = os.MkdirTemp(c.logs, store+"-"); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, servers.CopyLogs(logs)) }()
		}
		p, err := startPlane(ctx, c.programs, servers.Endpoints, port, dir, logs)
		if err != nil {
			return err
		}
		defer p.stop()
		return use(servers, p)
	})
}

// serve runs a control plane on the first store until ctx ends.
func (c *contest) serve(ctx context.Context, port int) error {
	return c.withPlane(ctx, c.Servers[0], port, func(servers *bench.Servers, p *plane) error {
		fmt.Printf("%s serves on %s, kube-apiserver on %s; logs are in %s\n", c.Servers[0],
			strings.Join(servers.Endpoints, ","), p.url, p.logs)
		fmt.Printf("curl -k -H 'Authorization: Bearer %s' %s/api/v1/namespaces\n", p.token, p.url)
		select {
		case <-ctx.Done():
			return nil
		case <-p.server.Ended():
			return p.failed()
		}
	})
}

// exercise is a run in progress.
type exercise struct {
	*contest
	plane   *plane
	servers *bench.Servers
	load    *load
	watcher *watcher
	killer  *killer
	work    *controllers
}

func (c *contest) newExercise(servers *bench.Servers, p *plane) *exercise {
	return &exercise{
		contest: c, plane: p, servers: servers, work: &controllers{client: p.client, amounts: c.work},
		load:    &load{client: p.client, workers: c.workers, every: time.Duration(float64(time.Second) / c.rate)},
		watcher: &watcher{client: p.client},
		killer:  &killer{servers: servers, members: c.Nodes, down: c.down, pause: c.pause},
	}
}

// run runs the load with kills, and then checks.
func (x *exercise) run(ctx context.Context) (*Run, error) {
	if err := x.work.prepare(ctx); err != nil {
		return nil, err
	}
	before, err := x.work.transitions(ctx)
	if err != nil {
		return nil, err
	}
	if err := x.watcher.begin(ctx); err != nil {
		return nil, err
	}
	watching, unwatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { x.watcher.run(watching) })
	defer watch.Wait()
	defer unwatch()
	if err := x.stress(ctx); err != nil {
		return nil, err
	}
	r := &Run{Load: loadAverage()}
	if err := x.catchUp(ctx, r); err != nil {
		return nil, err
	}
	unwatch()
	watch.Wait()
	if err := x.settle(ctx, r, before); err != nil {
		return nil, err
	}
	return r, x.check(ctx, r)
}

// stress runs the load, the kills and the controller manager's work. The first error ends them.
func (x *exercise) stress(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ending, end := context.WithTimeout(ctx, x.duration)
	defer end()
	var all sync.WaitGroup
	part := func(run func() error) {
		all.Go(func() {
			if err := run(); err != nil {
				cancel(err)
			}
		})
	}
	part(func() error { return x.killer.run(ctx, ending) })
	part(func() error { return x.work.run(ctx, x.duration/3) })
	part(func() error {
		select {
		case <-x.plane.server.Ended():
			return x.plane.failed()
		case <-ending.Done():
			return nil
		}
	})
	x.load.run(ctx, ending)
	all.Wait()
	return context.Cause(ctx)
}

// catchUp waits until the watch has an object that is written behind the load.
func (x *exercise) catchUp(ctx context.Context, r *Run) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	version, err := x.load.finish(ctx)
	if err != nil {
		return err
	}
	if err := x.watcher.await(ctx, version); err != nil {
		r.WrongEvents = append(r.WrongEvents, err.Error())
	}
	return nil
}

// settle waits until the controller manager has done its work.
func (x *exercise) settle(ctx context.Context, r *Run, before int) error {
	work, err := x.work.settle(ctx, settleTimeout)
	if err != nil {
		return fmt.Errorf("the state of the controller manager's work: %w", err)
	}
	after, err := x.work.transitions(ctx)
	if err != nil {
		return err
	}
	r.Work, r.LeaderChanges = work, after-before
	return nil
}

// check compares the objects and the events with the writes.
func (x *exercise) check(ctx context.Context, r *Run) error {
	l, w := x.load, x.watcher
	present, err := l.present(ctx)
	if err != nil {
		return err
	}
	r.Lost = lostWrites(l.histories, present)
	for _, endpoint := range x.servers.Endpoints {
		stored, err := readStore(ctx, endpoint)
		if err != nil {
			return err
		}
		for _, d := range differences(present, stored) {
			r.Lost = append(r.Lost, endpoint+": "+d)
		}
	}
	r.WrongEvents = append(r.WrongEvents, wrongEvents(l.histories, w.events, w.gaps)...)
	r.Events, r.Watches, r.Relists = len(w.events), w.opened, len(w.gaps)
	r.Created, r.Writes, r.WritesPS = l.created, l.acked, float64(l.acked)/x.duration.Seconds()
	r.PauseS = l.pause.Seconds()
	r.Kills, r.KillsOfLeader = x.killer.kills, x.killer.ofLeader
	r.addFailures(&l.failures)
	r.addFailures(&x.work.failures)
	return nil
}
