package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/settings"
)

// stateFlags are the flags that distinguish the first members from those that were added in the place of one.
func stateFlags(m *launch.Manifest, member launch.Member, dir string) []string {
	kept, found, err := readIdentity(dir)
	added := member.Joined || err == nil && found && kept.self != braid.MemberIDOf(member.Name, m.Token)
	if !added {
		return []string{"--initial-cluster-state=new"}
	}
	return []string{"--initial-cluster-state=existing", "--join=" + strings.Join(others(m, member), ",")}
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
