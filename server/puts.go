package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// A stream of puts saves what a call costs for each put (docs/using/put-stream.md). Its messages are etcd's
// transactions, since every client of etcd has that type, but are none: their puts take effect one after the other.

const (
	putService = "braid.KV"
	putsMethod = "Puts"
)

// PutStreamMethod is the method of the stream. Its messages are *etcdserverpb.TxnRequest and, in answer,
// *etcdserverpb.TxnResponse.
const PutStreamMethod = "/" + putService + "/" + putsMethod

// putServer is the service braid.KV.
type putServer interface {
	puts(stream grpc.ServerStream) error
}

var putDesc = grpc.ServiceDesc{
	ServiceName: putService,
	HandlerType: (*putServer)(nil),
	Streams: []grpc.StreamDesc{{StreamName: putsMethod, ClientStreams: true, ServerStreams: true,
		Handler: func(srv any, stream grpc.ServerStream) error { return srv.(putServer).puts(stream) }}},
}

const (
	// putWindow bounds the bytes of a stream's messages that are not answered.
	putWindow = 4 << 20
	// putMessages bounds their number.
	putMessages = 1024
	// putsOfMessage bounds the puts of a message: rates count that many, and no more, of a request.
	putsOfMessage = mostCounted
	// putAgain is how long a put waits before it is proposed again, if the log's queues were full.
	putAgain = 2 * time.Millisecond
)

// putStream is the stream of one client.
type putStream struct {
	s      *Server
	stream grpc.ServerStream
	client *braid.Client // keeps the order of the puts
	window *semaphore.Weighted
	// asked are the messages without an answer, in order.
	asked chan *putMessage
	// received is the error that ended receiving; nil: the client has sent everything. It is set before asked is
	// closed.
	received error
}

// putMessage records the results of the puts of a message.
type putMessage struct {
	bytes   int64
	settled chan struct{} // closed when all puts are

	mu       sync.Mutex
	left     int // puts that are not settled
	revision int64
	failed   error // of the first put that failed
	at       int   // its place in the message
}

// puts serves a stream.
func (s *Server) puts(stream grpc.ServerStream) error {
	ctx := stream.Context()
	for _, key := range []string{metadataMode, metadataToken, metadataRead} {
		if len(metadata.ValueFromIncomingContext(ctx, key)) > 0 {
			return status.Errorf(codes.InvalidArgument, "braid: a stream of puts has no %s", key)
		}
	}
	p := &putStream{s: s, stream: stream, client: s.log.Client(), window: semaphore.NewWeighted(putWindow),
		asked: make(chan *putMessage, putMessages)}
	s.watching.Go(p.receive)
	return p.answer(ctx)
}

// receive proposes puts until the client sends no more, or one fails.
func (p *putStream) receive() {
	defer close(p.asked)
	for {
		r := new(pb.TxnRequest)
		if err := p.stream.RecvMsg(r); err != nil {
			if !errors.Is(err, io.EOF) {
				p.received = err
			}
			return
		}
		if p.received = p.proposeAll(p.stream.Context(), r); p.received != nil {
			return
		}
	}
}

// answer answers messages, in order. A put that failed ends the stream.
func (p *putStream) answer(ctx context.Context) error {
	for {
		select {
		case m, more := <-p.asked:
			if !more {
				return p.received
			}
			if err := p.answerOne(ctx, m); err != nil {
				return err
			}
		case <-ctx.Done(): // also while the client sends nothing
			return ctx.Err()
		}
	}
}

// answerOne answers a message once all of its puts have taken effect.
func (p *putStream) answerOne(ctx context.Context, m *putMessage) error {
	select {
	case <-m.settled:
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.failed != nil {
		return m.failure()
	}
	p.window.Release(m.bytes)
	answer := &pb.TxnResponse{Header: p.s.header(m.revision), Succeeded: true}
	return sendWithin(ctx, sendTimeout, func() error { return p.stream.SendMsg(answer) })
}

// proposeAll checks and proposes the puts of a message. After an error nothing more of the stream is proposed. The puts
// of the message before the one that failed were.
func (p *putStream) proposeAll(ctx context.Context, r *pb.TxnRequest) error {
	puts, err := p.check(ctx, r)
	if err != nil {
		return err
	}
	m := &putMessage{bytes: min(int64(proto.Size(r)), putWindow), left: len(puts), settled: make(chan struct{})}
	if err := p.window.Acquire(ctx, m.bytes); err != nil {
		return err
	}
	select {
	case p.asked <- m:
	case <-ctx.Done():
		return ctx.Err()
	}
	for i, put := range puts {
		if err := p.propose(ctx, m, i, put); err != nil {
			for at := i; at < len(puts); at++ {
				m.settle(at, nil, err)
			}
			return err // the order would not be kept if later puts were proposed
		}
	}
	return nil
}

// check returns the puts of a message, unless the message is refused.
func (p *putStream) check(ctx context.Context, r *pb.TxnRequest) ([]*pb.PutRequest, error) {
	puts, err := putsOf(r)
	if err != nil {
		return nil, err
	}
	if err := p.s.fit(pb.KV_Put_FullMethodName, r); err != nil {
		return nil, err
	}
	if err := p.s.rates.take(ctx, r); err != nil {
		return nil, err
	}
	all := &pb.InternalRaftRequest{Txn: r}
	if err := p.s.mayPropose(ctx, all); err != nil {
		return nil, err
	}
	// Quotas of prefixes are checked when the puts before are applied.
	return puts, toStatus(p.s.store.CheckSpace(all))
}

// putsOf returns the puts of a message.
func putsOf(r *pb.TxnRequest) ([]*pb.PutRequest, error) {
	if len(r.Success) == 0 || len(r.Compare)+len(r.Failure) > 0 {
		return nil, status.Error(codes.InvalidArgument,
			"braid: a message of a stream of puts has puts in success, and nothing else")
	}
	if len(r.Success) > putsOfMessage {
		return nil, status.Errorf(codes.InvalidArgument,
			"braid: a message of a stream of puts has at most %d puts, not %d", putsOfMessage, len(r.Success))
	}
	puts := make([]*pb.PutRequest, len(r.Success))
	for i, op := range r.Success {
		if puts[i] = op.GetRequestPut(); puts[i] == nil || puts[i].PrevKv {
			return nil, status.Errorf(codes.InvalidArgument,
				"braid: operation %d of the message is no put, or asks for the previous value, which no answer has", i)
		}
		if err := checkPut(puts[i]); err != nil {
			return nil, err
		}
	}
	return puts, nil
}

// propose proposes a put, which is settled later unless propose fails.
func (p *putStream) propose(ctx context.Context, m *putMessage, i int, put *pb.PutRequest) error {
	e, err := p.s.store.Encode(ctx, &pb.InternalRaftRequest{Put: put})
	if err != nil {
		return toStatus(err)
	}
	if err := p.s.checkSize(&e); err != nil {
		return err
	}
	p.s.metrics.Pending.Add(1)
	err = p.order(ctx, &e, func(answer any, err error) {
		p.s.metrics.Pending.Add(-1)
		if err != nil {
			err = p.s.failed(err)
		}
		m.settle(i, answer, err)
	})
	if err != nil {
		p.s.metrics.Pending.Add(-1)
	}
	return err
}

// order gives a command to the log. If the log's queues are full, it tries again for as long as a request may take.
func (p *putStream) order(ctx context.Context, e *store.Encoded, done func(any, error)) error {
	for deadline := time.Now().Add(p.s.timeout); ; {
		err := p.client.ProposeAsync(e.Command, e.Body, done)
		if err == nil {
			return nil
		}
		if !errors.Is(err, braid.ErrOverloaded) || time.Now().After(deadline) {
			return p.s.failed(err)
		}
		select {
		case <-time.After(putAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle records the result of a put.
func (m *putMessage) settle(i int, answer any, err error) {
	var revision int64
	if err == nil {
		revision, err = revisionOf(answer)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil && (m.failed == nil || i < m.at) {
		m.failed, m.at = err, i
	}
	m.revision = max(m.revision, revision)
	if m.left--; m.left == 0 {
		close(m.settled)
	}
}

// revisionOf returns the revision of a put that was applied, or the error with which it was.
func revisionOf(answer any) (int64, error) {
	result, err := resultOf(answer)
	if err != nil || result.Err != nil {
		return 0, cmp.Or(err, result.Err)
	}
	put, _ := result.Resp.(*pb.PutResponse)
	return put.GetHeader().GetRevision(), nil
}

// failure is the error of the first put that failed, with its place in the message.
func (m *putMessage) failure() error {
	s := status.Convert(toStatus(m.failed))
	return status.Error(s.Code(), fmt.Sprintf("put %d of the message: %s", m.at, s.Message()))
}
