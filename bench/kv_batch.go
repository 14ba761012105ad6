package bench

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/braidlog/braid/bench/workload"
)

// validateBatch checks the puts of a message.
func (c *KVConfig) validateBatch() error {
	switch {
	case c.Batch < 0:
		return errors.New("puts of a message: must not be negative")
	case c.Batch > 0 && (c.API != EtcdAPI || c.Check || c.Load || c.Wrote != nil):
		return errors.New("messages of many puts: only braid's API has them, and they are not checked, nor used to " +
			"put each key before a run")
	case c.Batch > 0 && c.Workload.Mix != workload.Ratio(1):
		return errors.New("messages of many puts: they cannot be mixed with other requests")
	}
	return nil
}

// putStream is a stream of puts of a client.
type putStream struct {
	grpc.ClientStream
	cancel context.CancelFunc
	limit  *time.Timer // cancels the stream after requestTimeout without an answer
}

func openPutStream(ctx context.Context, t *kvTarget, method string) (*putStream, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := t.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		cancel()
		return nil, err
	}
	return &putStream{stream, cancel, time.AfterFunc(requestTimeout, cancel)}, nil
}

// put sends a message and waits for the answer, at most requestTimeout.
func (s *putStream) put(r *etcdserverpb.TxnRequest, answer *etcdserverpb.TxnResponse) error {
	s.limit.Reset(requestTimeout)
	defer s.limit.Stop() // until the next message is due
	_ = s.SendMsg(r)     // if it fails, RecvMsg returns the reason
	return s.RecvMsg(answer)
}

func (s *putStream) close() {
	if s != nil {
		s.limit.Stop()
		s.cancel()
	}
}

// runBatches sends one message of puts after the other until the run stops. After an error it opens another stream.
func (c *kvClient) runBatches(ctx context.Context) {
	r := c.r
	defer c.begin(ctx)()
	message, answer := c.newMessage(r.Batch), new(etcdserverpb.TxnResponse)
	var stream *putStream
	defer func() { stream.close() }()
	for {
		start, ok := c.await()
		if !ok || r.Total > 0 && r.issued.Add(int64(r.Batch)) > r.Total {
			return
		}
		for _, op := range message.Success {
			next, put := c.gen.Next(time.Duration(r.now()-r.loadFrom)), op.GetRequestPut()
			formatKey(put.Key[len(r.KeyPrefix):], next.Key)
			put.Value = c.value[:next.Size]
		}
		var err error
		if stream == nil {
			stream, err = openPutStream(ctx, r.targets[c.target], r.PutStream)
		}
		if err == nil {
			err = stream.put(message, answer)
		}
		if err != nil {
			stream.close()
			stream = nil
		}
		c.noteAll(workload.Update, r.Batch, start, err)
	}
}

// newMessage makes a message with a number of puts.
func (c *kvClient) newMessage(puts int) *etcdserverpb.TxnRequest {
	r := new(etcdserverpb.TxnRequest)
	for range puts {
		put := &etcdserverpb.PutRequest{Key: append([]byte(nil), c.key...)}
		r.Success = append(r.Success,
			&etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestPut{RequestPut: put}})
	}
	return r
}
