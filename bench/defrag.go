package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// DefragConfig measures how long puts pause while one member defragments its database. Each member has a client, which
// sends one put after another.
type DefragConfig struct {
	Contest
	MiB      int           // space in use in the database; as much again is free
	ValSize  int           // bytes of the values that fill it
	Alone    time.Duration // time of the puts before the defragmentation
	Progress func(Progress)
}

const (
	// defragFillers is the number of clients that fill the database.
	defragFillers = 8
	// longestDefrag bounds a defragmentation.
	longestDefrag = 10 * time.Minute
	fillPrefix    = "fill/"
	putPrefix     = "put/"
)

// Validate returns an error that says what is wrong with the configuration.
func (c *DefragConfig) Validate() error {
	switch {
	case c.MiB < 1 || c.MiB > 2000:
		return fmt.Errorf("%d MiB in use: must be between 1 and 2000", c.MiB)
	case c.ValSize < 100 || c.ValSize > 1<<20:
		return fmt.Errorf("values of %d bytes: must be between 100 and %d", c.ValSize, 1<<20)
	case c.Alone <= 0:
		return fmt.Errorf("puts alone for %v: must be positive", c.Alone)
	}
	return c.ValidateEtcd()
}

// RunDefrag runs the servers in rounds. When ctx ends, or a run fails, the result is of the runs before, nil if there
// are none.
func RunDefrag(ctx context.Context, c DefragConfig) (*DefragContest, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	runs, err := Alternate(ctx, len(c.Servers), c.Rounds, func(ctx context.Context, i int) (*DefragResult, error) {
		return c.runOne(ctx, c.Servers[i])
	})
	return newDefragContest(&c, runs), err
}

func (c *DefragConfig) runOne(ctx context.Context, name string) (*DefragResult, error) {
	r := &defragRun{DefragConfig: c, name: name, out: &DefragResult{Protocol: name, Nodes: c.Nodes}}
	meter := StartCPUMeter()
	err := c.With(ctx, name, largeQuota, func(servers *Servers) error {
		for _, e := range servers.Endpoints {
			t, err := newTarget(EtcdAPI, e, nil)
			if err != nil {
				return err
			}
			defer t.close()
			r.targets = append(r.targets, t)
		}
		r.member = etcdserverpb.NewMaintenanceClient(r.targets[0].conn)
		return r.run(ctx)
	})
	r.out.CPUShares = meter.Shares() // the servers have ended
	return r.out, err
}

// defragRun is a run on one cluster, whose first member defragments.
type defragRun struct {
	*DefragConfig
	name    string
	targets []*kvTarget // of each member
	member  etcdserverpb.MaintenanceClient
	out     *DefragResult
}

func (r *defragRun) run(ctx context.Context) error {
	r.show("filling")
	if err := r.fill(ctx); err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	before, err := r.member.Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return err
	}
	alone, err := r.puts(ctx, "puts alone", func() error { return sleep(ctx, r.Alone) })
	if err != nil {
		return err
	}
	began := time.Now()
	during, err := r.puts(ctx, "defragmenting", func() error {
		ctx, cancel := context.WithTimeout(ctx, longestDefrag)
		defer cancel()
		_, err := r.member.Defragment(ctx, &etcdserverpb.DefragmentRequest{})
		r.out.DefragS = time.Since(began).Seconds()
		return err
	})
	if err != nil {
		return err
	}
	after, err := r.member.Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return err
	}
	r.out.Version, r.out.InUseMiB = before.Version, float64(before.DbSizeInUse)/(1<<20)
	r.out.BeforeMiB, r.out.AfterMiB = float64(before.DbSize)/(1<<20), float64(after.DbSize)/(1<<20)
	r.out.Alone, r.out.During = newDefragPuts(alone), newDefragPuts(during)
	return nil
}

func (r *defragRun) show(phase string) {
	if r.Progress != nil {
		r.Progress(Progress{Protocol: r.name, Phase: phase})
	}
}

// sleep waits for a while, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fill puts twice as many keys as are to remain, then removes and compacts every other one: half of the space is free.
func (r *defragRun) fill(ctx context.Context) error {
	kv, value := r.targets[0].kv, make([]byte, r.ValSize)
	keys := r.MiB << 20 / r.ValSize
	key := func(i int) []byte { return fmt.Appendf(nil, fillPrefix+"%09d", i) }
	var fillers sync.WaitGroup
	errs := make([]error, defragFillers)
	for f := range defragFillers {
		fillers.Go(func() {
			for i := f; i < 2*keys && errs[f] == nil; i += defragFillers {
				_, errs[f] = kv.Put(ctx, &etcdserverpb.PutRequest{Key: key(i/2 + i%2*keys), Value: value})
			}
		})
	}
	fillers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	removed, err := kv.DeleteRange(ctx, &etcdserverpb.DeleteRangeRequest{Key: key(keys),
		RangeEnd: prefixEnd(fillPrefix)})
	if err != nil {
		return err
	}
	_, err = kv.Compact(ctx, &etcdserverpb.CompactionRequest{Revision: removed.Header.Revision, Physical: true})
	return err
}

// putter is a client that puts increasing numbers to its own key.
type putter struct {
	key     []byte
	puts    int // acknowledged
	errors  int
	longest time.Duration // between two acknowledged puts
	last    int           // the number of the last acknowledged put; 0: none
}

func (p *putter) run(ctx context.Context, kv etcdserverpb.KVClient, stop <-chan struct{}) {
	for at, i := time.Now(), 1; ; i++ {
		within, cancel := context.WithTimeout(ctx, requestTimeout)
		_, err := kv.Put(within, &etcdserverpb.PutRequest{Key: p.key, Value: strconv.AppendInt(nil, int64(i), 10)})
		cancel()
		now := time.Now()
		if err == nil {
			p.puts, p.last, p.longest, at = p.puts+1, i, max(p.longest, now.Sub(at)), now
		} else {
			p.errors++
		}
		select {
		case <-stop:
			p.longest = max(p.longest, now.Sub(at))
			return
		case <-ctx.Done():
			return
		default:
		}
	}
}

// puts runs a client of each member until during returns. Each member must have the last put of each client then.
func (r *defragRun) puts(ctx context.Context, phase string, during func() error) ([]*putter, error) {
	r.show(phase)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	all := make([]*putter, len(r.targets))
	for i, t := range r.targets {
		all[i] = &putter{key: fmt.Appendf(nil, "%s%s/%d", putPrefix, phase, i)}
		clients.Go(func() { all[i].run(ctx, t.kv, stop) })
	}
	err := during()
	close(stop)
	clients.Wait()
	if err != nil {
		return all, err
	}
	for i, t := range r.targets {
		got, err := t.kv.Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(putPrefix), RangeEnd: prefixEnd(putPrefix)})
		if err != nil {
			return all, err
		}
		values := map[string]string{}
		for _, kv := range got.Kvs {
			values[string(kv.Key)] = string(kv.Value)
		}
		for _, p := range all {
			if v := p.violation(values[string(p.key)]); v != "" {
				r.out.Violations = append(r.out.Violations, fmt.Sprintf("member %d: %s", i+1, v))
			}
		}
	}
	return all, nil
}

// violation compares the value of the key on a member, "" if it is absent, with the last acknowledged put; the result
// is "" if they agree. After an error the number may be a later one.
func (p *putter) violation(value string) string {
	n, err := strconv.Atoi(value)
	if value == "" {
		n, err = 0, nil
	}
	if err != nil || n < p.last || n > p.last && p.errors == 0 {
		return fmt.Sprintf("%s = %q, and %d was acknowledged last", p.key, value, p.last)
	}
	return ""
}
