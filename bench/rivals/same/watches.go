package same

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/prototext"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// watch draws what is watched.
func (g *generator) watch() *pb.WatchCreateRequest {
	from := g.at() // at most the newest: a watch of the future does not say how far it is
	if from = min(from, g.revision); from == 0 && g.yes(0.7) {
		from = max(1, g.revision-int64(g.IntN(100)))
	}
	r := &pb.WatchCreateRequest{Key: g.key(), RangeEnd: g.end(), StartRevision: from, PrevKv: g.yes(0.5),
		ProgressNotify: g.yes(0.1), Fragment: g.yes(0.1)}
	if g.yes(0.2) {
		r.Filters = []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_FilterType(g.IntN(2))}
	}
	return r
}

// watched compares what a watch sends up to a revision that both servers have reached. It returns the difference, "" if
// there is none, and how many events came.
func (p *pair) watched(r *pb.WatchCreateRequest, until int64) (difference string, events int, err error) {
	var got [2][]string
	var errs [2]error
	done := make(chan struct{})
	go func() {
		got[1], errs[1] = p.sides[1].watch(r, until)
		close(done)
	}()
	got[0], errs[0] = p.sides[0].watch(r, until)
	<-done
	for i, err := range errs {
		if err != nil {
			return "", 0, fmt.Errorf("%s: watch {%s} up to %d: %w, after %q", p.sides[i].name,
				prototext.MarshalOptions{}.Format(r), until, err, got[i])
		}
	}
	if !slices.Equal(got[0], got[1]) {
		return fmt.Sprintf("Watch {%s} up to %d\n  etcd:  %s\n  braid: %s", prototext.MarshalOptions{}.Format(r), until,
			strings.Join(got[0], "; "), strings.Join(got[1], "; ")), 0, nil
	}
	return "", len(got[0]), nil
}

// askEvery is how often a watch is asked how far it is.
const askEvery = 20 * time.Millisecond

// watch collects what a watch sends until it says that it has reached the revision, or until it is cancelled.
func (s *side) watch(r *pb.WatchCreateRequest, until int64) (got []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	stream, err := pb.NewWatchClient(s.conn).Watch(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}); err != nil {
		return nil, err
	}
	created := make(chan struct{})
	go askForProgress(ctx, stream, created)
	for {
		resp, err := stream.Recv()
		if err != nil {
			return got, err
		}
		for _, e := range resp.Events {
			got = append(got, prototext.MarshalOptions{}.Format(e))
		}
		switch {
		case resp.Canceled:
			return append(got, fmt.Sprintf("created %t, cancelled: %q, compacted %d", resp.Created, resp.CancelReason,
				resp.CompactRevision)), nil
		case resp.Created:
			close(created)
		case len(resp.Events) == 0 && resp.Header.Revision >= until:
			return got, nil
		}
	}
}

// askForProgress asks again and again, because a watch that is behind does not answer.
func askForProgress(ctx context.Context, stream pb.Watch_WatchClient, created <-chan struct{}) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case <-created:
			ask := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
			if stream.Send(ask) != nil {
				return
			}
		default:
		}
	}
}
