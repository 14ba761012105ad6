package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/protocol"
)

// placeFlags are the flags that distinguish the first members from those that were added in the place of one, and the
// zones of both.
func (f *upFlags) placeFlags(m *launch.Manifest, member launch.Member, dir string) []string {
	kept, found, err := readIdentity(dir)
	added := member.Joined || err == nil && found && kept.self != braid.MemberIDOf(member.Name, m.Token)
	zone, founding := "", m.InitialZones()
	switch at := slices.IndexFunc(m.Members, func(o launch.Member) bool { return o.Name == member.Name }); {
	case len(f.zones) > 0:
		zone = launch.ZoneOf(f.zones, at)
	case added:
		zone = member.Zone
	}
	flags := []string{"--zone=" + zone, "--initial-cluster-state=new"}
	switch {
	case added:
		flags = []string{flags[0], "--initial-cluster-state=existing", "--join=" + strings.Join(others(m, member), ",")}
	case founding != "":
		flags = append(flags, "--initial-cluster-zones="+founding)
	}
	return flags
}

// memberZones are the zones of the members by --zones; nil: it was not given.
func (f *upFlags) memberZones() (zones []string, err error) {
	if len(f.zones) > f.nodes {
		return nil, fmt.Errorf("--zones names %d zones for %d members", len(f.zones), f.nodes)
	}
	for i := range f.nodes {
		zone := launch.ZoneOf(f.zones, i)
		switch err := protocol.CheckZone(zone); {
		case err != nil:
			return nil, fmt.Errorf("--zones: %q: %w", zone, err)
		case zone != "":
			zones = append(zones, zone)
		case len(f.zones) > 0:
			return nil, errors.New("--zones: a zone has no name")
		}
	}
	return zones, nil
}

// others are the client URLs of all members but one.
func others(m *launch.Manifest, member launch.Member) (urls []string) {
	for _, o := range m.Members {
		if o.Name != member.Name {
			urls = append(urls, o.ClientURL())
		}
	}
	return urls
}

// fateOf asks the other members the fate of one that ended permanently. It waits until a majority answers.
func fateOf(ctx context.Context, m *launch.Manifest, member launch.Member, dir string) (fate launch.Fate, err error) {
	kept, found, err := readIdentity(dir)
	if err != nil {
		return fate, err
	}
	if !found {
		kept.self = braid.MemberIDOf(member.Name, m.Token)
	}
	client, err := clientv3.New(clientv3.Config{Context: ctx, Endpoints: others(m, member), Logger: zap.NewNop()})
	if err != nil {
		return fate, err
	}
	defer client.Close()
	const pause, patience = 100 * time.Millisecond, 5 * time.Second
	for {
		asked, cancel := context.WithTimeout(ctx, patience)
		list, err := client.MemberList(asked)
		cancel()
		if err == nil {
			return fateIn(list.Members, member, kept.self), nil
		}
		select {
		case <-ctx.Done():
			return fate, err
		case <-time.After(pause):
		}
	}
}

// fateIn is the fate, in a membership, of a member that ended with this id.
func fateIn(all []*pb.Member, member launch.Member, id braid.MemberID) launch.Fate {
	for _, m := range all {
		switch {
		case !settings.SameURLs(m.PeerURLs, member.PeerURLs()):
		case braid.MemberID(m.ID) == id:
			return launch.Fate{} // the cluster expects it unchanged
		case len(m.ClientURLs) > 0:
			return launch.Fate{Left: fmt.Sprintf("member %x was added in its place, and runs with another data directory", m.ID)}
		default:
			return launch.Fate{Joins: true}
		}
	}
	return launch.Fate{Left: "it was removed from the cluster"}
}
