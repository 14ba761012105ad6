package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/braidlog/braid/bench"
)

var (
	protocols   = flag.String("protocol", "raft,etcd", "braid's protocols, and etcd, separated by commas")
	nodes       = flag.Int("nodes", 3, "members of a store")
	rounds      = flag.Int("rounds", 3, "runs on each store, which alternate")
	duration    = flag.Duration("duration", 3*time.Minute, "of the load in a run")
	down        = flag.Duration("down", 5*time.Second, "time from the kill of a member to its restart")
	pause       = flag.Duration("pause", 10*time.Second, "from the return of a member to the next kill")
	workers     = flag.Int("clients", 8, "clients that create, update and delete objects")
	rate        = flag.Float64("rate", 60, "writes of all clients a second, at most")
	deployments = flag.Int("deployments", 10, "Deployments that the controller manager has to serve")
	replicas    = flag.Int("replicas", 5, "replicas of a Deployment, before some are scaled to twice as many")
	namespaces  = flag.Int("namespaces", 5, "namespaces that are deleted with their objects")
	asJSON      = flag.Bool("json", false, "print the result as JSON")
	logs        = flag.String("logs", "", "an existing folder in which logs are kept")
	serve       = flag.Bool("serve", false, "run one store without load, until interrupted")
	port        = flag.Int("port", 6443, "port of kube-apiserver with --serve, on loopback")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := withGo(ctx)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run builds all programs and runs them.
func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "apiserver-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c := newContest(dir)
	if err := c.validate(); err != nil {
		return err
	}
	c.progress("building braid, etcd, kube-apiserver and kube-controller-manager")
	if c.programs, err = build(ctx, dir); err != nil {
		return err
	}
	c.Executable, c.Rivals = c.programs.braid, c.programs.rivals
	if *serve {
		return c.serve(ctx, *port)
	}
	results, err := c.run(ctx)
	if *asJSON {
		err = errors.Join(err, json.NewEncoder(os.Stdout).Encode(results))
	} else {
		results.WriteText(os.Stdout)
	}
	if len(results.faults()) > 0 {
		err = errors.Join(err, errors.New("there were faults"))
	}
	return err
}

// newContest returns the contest that the flags describe.
func newContest(dir string) *contest {
	return &contest{
		Contest: bench.Contest{Servers: strings.Split(*protocols, ","), Nodes: *nodes, Rounds: *rounds, Dir: dir},
		logs:    *logs, duration: *duration, down: *down, pause: *pause, workers: *workers, rate: *rate,
		work:     amounts{deployments: *deployments, replicas: *replicas, namespaces: *namespaces},
		progress: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	}
}
