package server

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"go.etcd.io/etcd/server/v3/auth"

	"github.com/braidlog/braid/server/internal/history"
)

// report is a member's report about itself: a part of its history, and its status.
type report struct {
	Part   history.Part    `json:"part"`
	Status json.RawMessage `json:"status"`
}

// reporter has the status for the reports of this member. It is renewed at most once in gatherEvery, by the first
// request after that time.
type reporter struct {
	mu     sync.Mutex
	status json.RawMessage
	at     time.Time
	// The check whether this member is ready: the start of the one in progress (zero: none is), and the last result.
	checking time.Time
	checked  chan struct{} // closed when the one in progress ends
	ready    error
}

// readyWait is how long a status waits for the check whether this member is ready. If that takes longer than
// readyDoubt, the member is not.
const readyWait, readyDoubt = 200 * time.Millisecond, 700 * time.Millisecond

// reportHere is this member's report. Every member may ask for it.
func (s *Server) reportHere(_ context.Context, _ *auth.AuthInfo, q *wrapperspb.BytesValue) (
	*wrapperspb.BytesValue, error,
) {
	var after history.Position
	if err := json.Unmarshal(q.GetValue(), &after); err != nil {
		return nil, err
	}
	text, err := s.reportedStatus()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(&report{Part: s.history.Since(after), Status: text})
	return wrapperspb.Bytes(body), err
}

// reportedStatus is the status as JSON, at most gatherEvery old.
func (s *Server) reportedStatus() (json.RawMessage, error) {
	ready := s.readyLately()
	r := &s.reporter
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fresh() {
		return r.status, nil
	}
	text, err := json.Marshal(s.viewOf(ready))
	if err != nil {
		return nil, err
	}
	r.status, r.at = text, time.Now()
	return text, nil
}

// fresh reports whether the status need not be renewed. r.mu is held.
func (r *reporter) fresh() bool { return r.status != nil && time.Since(r.at) < gatherEvery }

// readyLately reports why this member is not ready (nil: it is). It does not wait for the end of a check that takes
// longer than readyWait, as without a majority.
func (s *Server) readyLately() error {
	r := &s.reporter
	r.mu.Lock()
	if r.checking.IsZero() {
		if r.fresh() {
			defer r.mu.Unlock()
			return r.ready
		}
		r.checking, r.checked = time.Now(), make(chan struct{})
		go s.checkReady(r.checked)
	}
	began, checked := r.checking, r.checked
	r.mu.Unlock()
	wait := time.NewTimer(readyWait)
	defer wait.Stop()
	select {
	case <-checked:
	case <-wait.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if took := time.Since(began); took > readyDoubt && began.Equal(r.checking) {
		return fmt.Errorf("a read has waited %s for a majority or for this member to catch up",
			took.Round(100*time.Millisecond))
	}
	return r.ready
}

// checkReady checks whether this member is ready, and closes checked with the result.
func (s *Server) checkReady(checked chan struct{}) {
	err := s.checks.ready(context.Background())
	r := &s.reporter
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready, r.checking = err, time.Time{}
	close(checked)
}
