package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3discovery"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
)

// resolver asks DNS; [net.DefaultResolver], or a test's.
type resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
	LookupHost(ctx context.Context, host string) ([]string, error)
}

// discoverer finds the members that found a cluster with this one.
type discoverer struct {
	s      *settings.Settings
	dns    resolver
	logger *zap.Logger
}

const (
	// discoveredFile has the cluster that a member found, in its data directory: a later start does not depend on records
	// that may have changed, or on another cluster.
	discoveredFile = "discovered.json"
	dnsTimeout     = 10 * time.Second
)

// discovered is the cluster that a member found.
type discovered struct {
	InitialCluster string `json:"initial_cluster"`
	Name           string `json:"name"` // of this member there
}

// run sets the initial cluster, if it is to be found. began: the data directory has the member.
func (d *discoverer) run(ctx context.Context, began bool) error {
	file := filepath.Join(d.s.DataDir, discoveredFile)
	if !d.s.Discovers() || d.s.InitialState == settings.StateExisting && d.s.SRVDomain == "" {
		return nil
	}
	if began {
		return d.again(file)
	}
	find := d.bySRV
	if d.s.SRVDomain == "" {
		find = d.byRegistry
	}
	found, err := find(ctx)
	if err != nil {
		return fmt.Errorf("discover the members: %w", err)
	}
	if err := d.s.Discovered(found.InitialCluster, found.Name); err != nil {
		return err
	}
	content, err := json.Marshal(found)
	if err != nil {
		return err
	}
	if err := durable.MakeDir(vfs.OS, d.s.DataDir, 0o700); err != nil {
		return err
	}
	return wal.WriteFile(vfs.OS, file, content)
}

// again sets the cluster that an earlier start found. A member that was not founded so has no such file: its directory
// knows the cluster.
func (d *discoverer) again(file string) error {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var found discovered
	if err == nil {
		err = json.Unmarshal(content, &found)
	}
	if err != nil {
		return fmt.Errorf("%s is damaged: %w", file, err)
	}
	return d.s.Discovered(found.InitialCluster, found.Name)
}

// bySRV finds the members in SRV records, as etcd does. The records do not have their names, so each is named after its
// host and port, by all members: ids follow from names.
func (d *discoverer) bySRV(ctx context.Context) (discovered, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	end := ""
	if d.s.SRVName != "" {
		end = "-" + d.s.SRVName
	}
	var members, own []string
	var errs []error
	for _, of := range []struct{ service, scheme string }{{"etcd-server-ssl", "https"}, {"etcd-server", "http"}} {
		_, records, err := d.dns.LookupSRV(ctx, of.service+end, "tcp", d.s.SRVDomain)
		if unknown := (*net.DNSError)(nil); err != nil && (!errors.As(err, &unknown) || !unknown.IsNotFound) {
			return discovered{}, err // the list would be a part
		}
		errs = append(errs, err)
		for _, r := range records {
			host := strings.ToLower(strings.TrimSuffix(r.Target, "."))
			name := net.JoinHostPort(host, strconv.Itoa(int(r.Port)))
			members = append(members, name+"="+of.scheme+"://"+name)
			if d.isOwn(ctx, of.scheme, host, strconv.Itoa(int(r.Port))) {
				own = append(own, name)
			}
		}
	}
	if len(members) == 0 {
		return discovered{}, errors.Join(errs...)
	}
	slices.Sort(members)
	cluster := strings.Join(slices.Compact(members), ",")
	if len(own) != 1 {
		return discovered{}, fmt.Errorf("%d of the SRV records of %s are of this member, which is at %s, and one has to be: "+
			"the records are %s", len(own), d.s.SRVDomain, strings.Join(d.s.AdvertisePeer, ","), cluster)
	}
	return discovered{InitialCluster: cluster, Name: own[0]}, nil
}

// isOwn reports whether a record has the address of one of this member's peer URLs, by its name or by its number.
func (d *discoverer) isOwn(ctx context.Context, scheme, host, port string) bool {
	for _, text := range d.s.AdvertisePeer {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != scheme || u.Port() != port {
			continue
		}
		if strings.EqualFold(strings.TrimSuffix(u.Hostname(), "."), host) {
			return true
		}
		theirs, err := d.dns.LookupHost(ctx, host)
		if err != nil {
			continue // not this member's, which can resolve its own name
		}
		ours, err := d.dns.LookupHost(ctx, u.Hostname())
		if err == nil && slices.ContainsFunc(ours, func(a string) bool { return slices.Contains(theirs, a) }) {
			return true
		}
	}
	return false
}

// byRegistry registers in another cluster, and waits until all members of this one have.
func (d *discoverer) byRegistry(ctx context.Context) (discovered, error) {
	var own []string
	for _, u := range d.s.AdvertisePeer {
		own = append(own, d.s.Name+"="+u)
	}
	config := &v3discovery.DiscoveryConfig{ConfigSpec: d.s.Registry, Token: d.s.DiscoveryToken}
	id := types.ID(braid.MemberIDOf(d.s.Name, d.s.DiscoveryToken))
	type result struct {
		cluster string
		err     error
	}
	done := make(chan result, 1)
	go func() {
		cluster, err := v3discovery.JoinCluster(d.logger, config, id, strings.Join(own, ","))
		done <- result{cluster, err}
	}()
	select {
	case r := <-done:
		return discovered{InitialCluster: r.cluster, Name: d.s.Name}, r.err
	case <-ctx.Done(): // the process ends, and the waiting goroutine with it
		return discovered{}, context.Cause(ctx)
	}
}
