package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcdServer is a member of an etcd cluster, with etcd's own flags.
type etcdServer struct {
	Name, DataDir, ClientURL, PeerURL, InitialCluster, Token string
	// MaxRequestBytes and QuotaBytes are etcd's limits; 0: its defaults.
	MaxRequestBytes uint
	QuotaBytes      int64
	BcryptCost      uint // 0: etcd's default
}

// run runs the member with etcd's own defaults until ctx ends.
func (m etcdServer) run(ctx context.Context) error {
	c := embed.NewConfig()
	client, err := url.Parse(m.ClientURL)
	if err != nil {
		return fmt.Errorf("client URL: %w", err)
	}
	peer, err := url.Parse(m.PeerURL)
	if err != nil {
		return fmt.Errorf("peer URL: %w", err)
	}
	c.Name, c.Dir, c.InitialCluster, c.InitialClusterToken = m.Name, m.DataDir, m.InitialCluster, m.Token
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	c.MaxRequestBytes, c.QuotaBackendBytes = cmp.Or(m.MaxRequestBytes, c.MaxRequestBytes),
		cmp.Or(m.QuotaBytes, c.QuotaBackendBytes)
	c.BcryptCost = cmp.Or(m.BcryptCost, c.BcryptCost)
	c.LogLevel, c.LogOutputs = "error", []string{"stderr"}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(time.Minute):
		return fmt.Errorf("etcd member %s was not ready after a minute", m.Name)
	case err := <-e.Err():
		return err
	case <-ctx.Done():
		return nil
	}
	select {
	case err := <-e.Err():
		return err
	case <-ctx.Done():
		return nil
	}
}
