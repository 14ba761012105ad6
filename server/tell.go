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

// teller tells others about this member, whoever asks, once a second.
type teller struct {
	mu     sync.Mutex
	status json.RawMessage
	at     time.Time
	// The check whether this member is ready: when the one that runs began (zero: none does), and how the last ended.
	checking time.Time
	checked  chan struct{} // closed when the one that runs ends
	ready    error
}

// readyWait is how long a status waits for the check whether this member is ready. If that takes longer than
// readyDoubt, the member is not.
const readyWait, readyDoubt = 200 * time.Millisecond, 700 * time.Millisecond

// tell is what this member tells of what came after a position.
func (s *Server) tell(at history.Position) (told, error) {
	text, err := s.toldStatus()
	return told{Part: s.history.Since(at), Status: text}, err
}

// tellAsked is tell for another member. Every member may ask.
func (s *Server) tellAsked(_ context.Context, _ *auth.AuthInfo, at *wrapperspb.BytesValue) ([]byte, error) {
	var position history.Position
	if err := json.Unmarshal(at.GetValue(), &position); err != nil {
		return nil, err
	}
	t, err := s.tell(position)
	if err != nil {
		return nil, err
	}
	return json.Marshal(&t)
}

// toldStatus is the status as JSON, as of the last second.
func (s *Server) toldStatus() (json.RawMessage, error) {
	err := s.readyLately()
	t := &s.teller
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status != nil && time.Since(t.at) < gatherEvery {
		return t.status, nil
	}
	text, failure := json.Marshal(s.viewOf(err))
	if failure != nil {
		return nil, failure
	}
	t.status, t.at = text, time.Now()
	return text, nil
}

// readyLately is whether this member is ready, without the wait for the answer of a cluster that does not answer.
func (s *Server) readyLately() error {
	t := &s.teller
	t.mu.Lock()
	if t.checking.IsZero() {
		if t.status != nil && time.Since(t.at) < gatherEvery {
			defer t.mu.Unlock()
			return t.ready
		}
		t.checking, t.checked = time.Now(), make(chan struct{})
		go s.checkReady(t.checked)
	}
	began, checked := t.checking, t.checked
	t.mu.Unlock()
	wait := time.NewTimer(readyWait)
	defer wait.Stop()
	select {
	case <-checked:
	case <-wait.C:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if took := time.Since(began); took > readyDoubt && began.Equal(t.checking) {
		return fmt.Errorf("a read has waited %s for a majority or for this member to catch up",
			took.Round(100*time.Millisecond))
	}
	return t.ready
}

func (s *Server) checkReady(checked chan struct{}) {
	err := s.checks.ready(context.Background())
	t := &s.teller
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ready, t.checking = err, time.Time{}
	close(checked)
}
