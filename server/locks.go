package server

import (
	"context"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
)

// newClient makes an etcd client that calls the services of this server directly. etcd's lock and
// election services need such a client.
func (s *services) newClient() *clientv3.Client {
	c := clientv3.NewCtxClient(context.Background(), clientv3.WithZapLogger(zap.NewNop()))
	c.KV = clientv3.NewKVFromKVClient(adapter.KvServerToKvClient(s.kv), c)
	c.Lease = clientv3.NewLeaseFromLeaseClient(adapter.LeaseServerToLeaseClient(s.lease), c, time.Second)
	c.Watcher = callersWatcher{clientv3.NewWatchFromWatchClient(adapter.WatchServerToWatchClient(s.watch), c)}
	c.Cluster = clientv3.NewClusterFromClusterClient(adapter.ClusterServerToClusterClient(s.cluster), c)
	c.Auth = clientv3.NewAuthFromAuthClient(adapter.AuthServerToAuthClient(s.auth), c)
	c.Maintenance = clientv3.NewMaintenanceFromMaintenanceClient(
		adapter.MaintenanceServerToMaintenanceClient(s.maintenance), c)
	return c
}

// callersWatcher has each caller's watches on a stream of its own. etcd's client tells callers apart by what they send,
// and gives a stream the rights of the call that opened it.
type callersWatcher struct{ clientv3.Watcher }

// Watch implements clientv3.Watcher.
func (w callersWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	return w.Watcher.Watch(withCaller(ctx), key, opts...)
}

// RequestProgress implements clientv3.Watcher.
func (w callersWatcher) RequestProgress(ctx context.Context) error {
	return w.Watcher.RequestProgress(withCaller(ctx))
}

// withCaller adds to the context of a call, as metadata to be sent, what names its user: a token, or certificates.
func withCaller(ctx context.Context) context.Context {
	caller := metadata.MD{}
	for _, key := range []string{rpctypes.TokenFieldNameGRPC, rpctypes.TokenFieldNameSwagger} {
		caller.Append(key, metadata.ValueFromIncomingContext(ctx, key)...)
	}
	if p, ok := peer.FromContext(ctx); ok {
		if secure, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			for _, chain := range secure.State.VerifiedChains { // none is empty
				caller.Append("certificate", chain[0].Subject.CommonName)
			}
		}
	}
	return metadata.NewOutgoingContext(ctx, caller)
}
