package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid/bench"
)

func newBenchKubernetesCommand() *cobra.Command {
	var f contestFlags
	var c bench.KubernetesConfig
	cmd := &cobra.Command{
		Use:   "kubernetes",
		Short: "benchmark servers with a load like that of Kubernetes",
		Long: `kubernetes starts clusters as processes on this machine, one after the other in alternating
rounds, and loads them as the API servers of a Kubernetes cluster do. The objects are created
first; then all operations are due at fixed rates, whether or not the servers keep up:

  lease update         of each node every 10 seconds
  node status          of each node every 5 minutes
  pod create, status,  --churn pods a second; each is updated twice
  delete
  event                4 for each of these pods, with a lease of an hour
  list                 of one resource every --list-every, in pages of 500 at one revision
  compaction           of the history older than 5 minutes, every 5 minutes

--rate multiplies these rates. Writes are transactions guarded by the object's revision. Latency
counts from when an operation was due. Each resource has a watch with previous values; the delay of
an event counts from the request that caused it.

Each watch must receive exactly the events of its objects, in order of revision, and each list must
be complete. Otherwise the exit code is 1.`,
		Example: `  braid bench kubernetes --objects 500
  braid bench kubernetes --peer etcd --rounds 1
  braid bench kubernetes --peer etcd --rate 2 --json`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runContest(cmd, &f, &c.Contest, &c.Progress, c.Validate, func() (contestResult, error) {
			r, err := bench.RunKubernetes(cmd.Context(), c)
			if r == nil {
				return nil, err
			}
			return r, err
		})
	}
	fl := cmd.Flags()
	f.register(fl)
	fl.IntVar(&c.Objects, "objects", 5000, "nodes of the Kubernetes cluster")
	fl.IntVar(&c.PodsPerNode, "pods-per-node", 30, "pods of each node that are created first")
	fl.Float64Var(&c.Churn, "churn", 100, "pods a second that are created, updated twice and deleted")
	fl.DurationVar(&c.ListEvery, "list-every", 10*time.Second, "time between two lists of a resource")
	fl.Float64Var(&c.Rate, "rate", 1, "factor of all rates")
	fl.IntVar(&c.Conns, "conns", 12, "connections of the requests")
	fl.DurationVar(&c.Duration, "duration", time.Minute, "duration of the measurement")
	fl.DurationVar(&c.Warmup, "warmup", 5*time.Second, "duration of the load before the measurement")
	return cmd
}
