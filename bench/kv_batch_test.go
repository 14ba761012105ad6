package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// answering is a stream whose messages are answered.
type answering struct{ grpc.ClientStream }

func (answering) SendMsg(any) error { return nil }
func (answering) RecvMsg(any) error { return nil }

// A stream has no time limit between an answer and the next message, which may be due much later.
func TestPutStreamMayRest(t *testing.T) {
	s := &putStream{answering{}, func() {}, time.AfterFunc(requestTimeout, func() {})}
	require.NoError(t, s.put(new(etcdserverpb.TxnRequest), new(etcdserverpb.TxnResponse)))
	require.False(t, s.limit.Stop(), "it runs still")
}
