package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid"
)

// benchMemberFlags are the flags of members that bench kv starts, named as etcd's.
type benchMemberFlags struct {
	name, dir, client, peer string
	cluster, token          string
	advertised              [2]string // same as the URLs listened on
}

func (f *benchMemberFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.name, "name", "default", "name of the member")
	fl.StringVar(&f.dir, "data-dir", "", "data directory")
	fl.StringVar(&f.client, "listen-client-urls", "", "URL for clients")
	fl.StringVar(&f.advertised[0], "advertise-client-urls", "", "same as --listen-client-urls")
	fl.StringVar(&f.peer, "listen-peer-urls", "",
		"URL for members, or a list with commas, one for each network card")
	fl.StringVar(&f.advertised[1], "initial-advertise-peer-urls", "", "same as --listen-peer-urls")
	fl.StringVar(&f.cluster, "initial-cluster", "",
		"members, as name=URL; several entries for several network cards")
	fl.StringVar(&f.token, "initial-cluster-token", "bench", "token of the cluster")
	for _, required := range []string{"data-dir", "listen-client-urls", "listen-peer-urls", "initial-cluster"} {
		_ = cmd.MarkFlagRequired(required) // fails only for a flag that does not exist
	}
}

// member returns the options of a node that name it and its cluster, and the address for clients.
func (f *benchMemberFlags) member() (o braid.Options, clients string, err error) {
	if clients, err = hostOf(f.client); err != nil {
		return o, "", fmt.Errorf("--listen-client-urls: %w", err)
	}
	o = braid.Options{Self: braid.MemberIDOf(f.name, f.token), Dir: f.dir}
	for part := range strings.SplitSeq(f.peer, ",") { // one for each network card
		peer, err := hostOf(part)
		if err != nil {
			return o, "", fmt.Errorf("--listen-peer-urls: %w", err)
		}
		o.Listen = append(o.Listen, peer)
	}
	for part := range strings.SplitSeq(f.cluster, ",") {
		name, peer, ok := strings.Cut(part, "=")
		if !ok {
			return o, "", fmt.Errorf("--initial-cluster: %q must be name=URL", part)
		}
		if _, err := hostOf(peer); err != nil {
			return o, "", fmt.Errorf("--initial-cluster: %w", err)
		}
		id := braid.MemberIDOf(name, f.token)
		if i := slices.IndexFunc(o.Members, func(m braid.Member) bool { return m.ID == id }); i >= 0 {
			o.Members[i].PeerURLs = append(o.Members[i].PeerURLs, peer)
			continue
		}
		o.Members = append(o.Members, braid.Member{ID: id, Name: name, PeerURLs: []string{peer}})
	}
	o.Cluster = braid.ClusterIDOf(o.Members, f.token)
	return o, clients, nil
}

// hostOf returns the address of an http URL.
func hostOf(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	if u.Scheme != "http" || u.Port() == "" {
		return "", fmt.Errorf("%q must be http://HOST:PORT", text)
	}
	return u.Host, nil
}
