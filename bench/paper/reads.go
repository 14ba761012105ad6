package paper

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/braidlog/braid"
)

// reader serves reads of bodies to other members' programs, over the members' links: a client with such a link would
// get the same.
type reader struct {
	mu    sync.Mutex
	node  *braid.Node
	store *store
	took  []time.Duration // of the reads, at this member alone
}

func (r *reader) serve(n *braid.Node, m *machine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node, r.store = n, &m.store
}

// taken returns the latencies of the reads since its last call.
func (r *reader) taken() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	took := r.took
	r.took = nil
	return took
}

// answer is a linearizable read of the key or of the body that the request names. An empty request reads nothing; it
// shows that the member serves.
func (r *reader) answer(ctx context.Context, _ braid.MemberID, request []byte) ([]byte, error) {
	r.mu.Lock()
	node, store := r.node, r.store
	r.mu.Unlock()
	began := time.Now()
	if err := node.ReadBarrier(ctx); err != nil || len(request) == 0 {
		return nil, err
	}
	if request[0] == keyRequest && len(request) == len(requestKey(0)) {
		return store.get(binary.LittleEndian.Uint64(request[1:])), nil
	}
	var ref braid.BodyRef
	if err := json.Unmarshal(request, &ref); err != nil {
		return nil, err
	}
	body, err := node.Body(ctx, ref)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, time.Since(began))
	return body, err
}

// readTimeout bounds a read, and a change of leaders.
const readTimeout = 10 * time.Second

// readAnew writes, makes another member the leader, and reads the last writes from it.
func (t *braidTarget) readAnew(ctx context.Context, w Work) (Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	_, last, err := t.write(ctx, Work{Requests: w.Requests, Payload: w.Payload, Body: w.Body, Clients: w.Clients})
	if err != nil {
		return nil, err
	}
	leader, err := t.changeLeader(ctx, last.leader)
	if err != nil {
		return nil, err
	}
	ask := func(request []byte) ([]byte, time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		began := time.Now()
		body, err := last.leader.node.Ask(ctx, leader.options.Self, request)
		return body, time.Since(began), err
	}
	if _, _, err := ask(nil); err != nil {
		return nil, fmt.Errorf("the new leader does not serve: %w", err)
	}
	request, err := json.Marshal(last.ref)
	if err != nil {
		return nil, err
	}
	leader.reader.taken()
	var took []time.Duration
	for range w.Reads {
		body, d, err := ask(request)
		if err != nil {
			return nil, fmt.Errorf("read %d from the new leader: %w", len(took)+1, err)
		}
		if !bytes.Equal(body, last.body) {
			return nil, errors.New("a read returned something else than what was written")
		}
		took = append(took, d)
	}
	return sampleOfReads(took, leader.reader.taken()), nil
}

func sampleOfReads(took, local []time.Duration) Sample {
	sum := time.Duration(0)
	for _, d := range took {
		sum += d
	}
	s := Sample{FirstRead: ms(took[0]), MeanRead: ms(sum) / float64(len(took)), FirstLocal: ms(local[0])}
	if later := slices.Sorted(slices.Values(local[1:])); len(later) > 0 {
		s[NextLocal] = ms(quantile(later, 0.5))
	}
	return s
}

// changeLeader makes the member after the leader lead.
func (t *braidTarget) changeLeader(ctx context.Context, leader *member) (*member, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	next := t.members[(slices.Index(t.members, leader)+1)%len(t.members)]
	if err := leader.node.TransferLeader(ctx, next.options.Self); err != nil {
		return nil, fmt.Errorf("changing the leader: %w", err)
	}
	return t.await(ctx, func(m *member) bool { return m == next })
}
