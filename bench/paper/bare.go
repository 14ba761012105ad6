package paper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/mapkv"
)

// bareTarget is a set of servers that answer at once, without a log: the cost of HTTP itself, with the same clients
// as the others.
type bareTarget struct {
	servers []*http.Server
	bases   []string // URLs without a path, one for each caller
	ended   chan error
}

func openBare(s Setup) (Target, error) {
	n := cmp.Or(s.Members, 3)
	t := &bareTarget{ended: make(chan error, n)}
	var members []braid.Member
	for i := range n {
		members = append(members, braid.Member{ID: braid.MemberID(i + 1)})
	}
	var bases []string
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		server := &http.Server{Handler: mapkv.Bare(members[i].ID, members), ReadHeaderTimeout: mapkv.DefaultTimeout}
		t.servers, bases = append(t.servers, server), append(bases, "http://"+l.Addr().String())
		go func() { t.ended <- server.Serve(l) }()
	}
	for i := range webCallers {
		t.bases = append(t.bases, bases[i%n])
	}
	return t, nil
}

// Run implements [Target], for clients in closed loops.
func (t *bareTarget) Run(ctx context.Context, w Work) (Sample, error) {
	to := newWebClients(&w, t.bases)
	defer hangUp(to)
	l := startLoops(w, to, 0)
	s, err := measureBare(ctx, l)
	l.stop()
	_, werr := l.wait(ctx)
	return s, errors.Join(err, werr)
}

func measureBare(ctx context.Context, l *loops) (Sample, error) {
	if err := sleepUntil(ctx, l.began.Add(settleTime)); err != nil {
		return nil, err
	}
	from, before := time.Since(l.began), bench.CPUTime()
	if err := sleepUntil(ctx, l.began.Add(from+l.work.For)); err != nil {
		return nil, err
	}
	to, used := time.Since(l.began), bench.CPUTime()-before
	done := l.within(from, to)
	if len(done) == 0 {
		return nil, errors.New("no request was answered")
	}
	s := Sample{Throughput: float64(len(done)) / (to - from).Seconds()}
	s.addAnswers(done, &l.work)
	s.addCPU(used, float64(len(done)))
	return s, nil
}

// Check implements [Target]: these servers have no state to compare.
func (t *bareTarget) Check(context.Context) error { return nil }

// Close implements [Target].
func (t *bareTarget) Close() error {
	var errs []error
	for _, s := range t.servers {
		errs = append(errs, s.Close())
	}
	for range t.servers {
		if err := <-t.ended; !errors.Is(err, http.ErrServerClosed) {
			errs = append(errs, fmt.Errorf("a server ended: %w", err))
		}
	}
	return errors.Join(errs...)
}
