package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/braidlog/braid/internal/registry"
)

// serverKinds are the servers that the benchmark can start, by their names.
var serverKinds = ownServers(map[string]ServerKind{
	"etcd": {Name: "etcd", Args: []string{"etcd-member"}, Rival: true},
	// The cost of HTTP itself: it answers as the map services do, without a log.
	"bare-map": {Name: "bare-map", Args: []string{"bench", "mapkv-serve", "--bare"}, API: MapAPI, Bare: true},
	// The cost of gRPC itself. There are as many processes as members, and the clients are distributed over them as
	// over the members of other servers, so that the difference to another server is the work for its log and store.
	Limit: {Name: Limit, Args: []string{"bench", "limit-serve"}, Bare: true},
})

// ownServers adds a server for each of braid's protocols that can serve, and a map service for each that supports it.
func ownServers(all map[string]ServerKind) map[string]ServerKind {
	for _, name := range registry.Serving() {
		all[name] = serving(name)
	}
	for _, name := range registry.Mapping() {
		all[name+"-map"] = mapServing(name)
	}
	return all
}

// serving returns braid's own server with one of its protocols, mapServing the map service.
func serving(protocol string) ServerKind {
	return ServerKind{Name: protocol, Protocol: protocol, Args: []string{"serve", "--protocol", protocol}}
}

func mapServing(protocol string) ServerKind {
	return ServerKind{Name: protocol + "-map", Protocol: protocol, Args: []string{"bench", "mapkv-serve", "--protocol",
		protocol}, API: MapAPI}
}

// ServerKinds returns the names of the servers that the benchmark can start, sorted.
func ServerKinds() []string {
	var names []string
	for name := range serverKinds {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// largeQuota are the flags of servers that store more than etcd's default quota.
var largeQuota = []string{"--quota-backend-bytes", "8589934592"}

// Contest says which servers the benchmark starts and compares. Each server is started as a new cluster for each run.
type Contest struct {
	Servers    []string // of ServerKinds; the first is compared with the others
	Nodes      int
	Rounds     int
	Executable string // braid's own
	Rivals     string // the program that runs the rivals, see [FindRivals]; may be empty if there are none
	Dir        string // for the members' directories
}

func (c *Contest) validate() error {
	for _, s := range c.Servers {
		if _, ok := serverKinds[s]; !ok {
			return fmt.Errorf("unknown server %q: the benchmark can start %s", s, strings.Join(ServerKinds(), ", "))
		}
	}
	if c.Nodes < 1 || c.Nodes > 15 {
		return fmt.Errorf("%d members: must be between 1 and 15", c.Nodes)
	}
	return nil
}

// ValidateEtcd is validate for loads that need etcd's API.
func (c *Contest) ValidateEtcd() error {
	errs := []error{c.validate()}
	for _, s := range c.Servers {
		switch kind := serverKinds[s]; {
		case kind.API != EtcdAPI:
			errs = append(errs, fmt.Errorf("%s: it does not have etcd's API", s))
		case kind.Bare:
			errs = append(errs, fmt.Errorf("%s: it stores nothing, and answers only puts and gets", s))
		}
	}
	return errors.Join(errs...)
}

// With starts a cluster with further flags, runs a load on it and stops it.
func (c *Contest) With(ctx context.Context, name string, flags []string, load func(*Servers) error) error {
	dir, err := os.MkdirTemp(c.Dir, name+"-")
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	kind := serverKinds[name]
	kind.Flags = flags
	executable := c.Executable
	if kind.Rival {
		executable = c.Rivals
	}
	servers, err := StartServers(ctx, executable, kind, c.Nodes, dir)
	if err != nil {
		return err
	}
	defer servers.Stop()
	if err := load(servers); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
