package server

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// deadlines is a response that notes the read deadline.
type deadlines struct {
	*httptest.ResponseRecorder
	at atomic.Int64 // in seconds since 1970
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.at.Store(at.Unix())
	return nil
}

// A body of JSON that does not arrive is ended, as a gRPC call is, while others wait for its memory.
func TestSlowBodiesAreEnded(t *testing.T) {
	s := &Server{endpoints: endpoints{intake: newIntake(1<<20, maxCalls)}, timeout: time.Minute}
	in, out := net.Pipe()
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodPost, "/v3/kv/put", in)
	done := s.meterBody(w, r)
	body := r.Body.(*jsonBody)
	body.began = time.Now().Add(-busyGrace - time.Second)
	read := make(chan error, 1)
	go func() { read <- second(body.Read(make([]byte, 10))) }()
	eventually(t, "it to wait for its client", func() bool {
		body.mu.Lock()
		defer body.mu.Unlock()
		return body.hurried.reading
	})
	s.intake.sweep()
	require.Greater(t, w.at.Load(), time.Now().Unix(), "nobody waits for its room")

	var one, two, three int64
	require.True(t, s.intake.small.tryAcquire(&one, s.intake.small.each))
	require.True(t, s.intake.small.tryAcquire(&two, s.intake.small.most-s.intake.small.used))
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() { waited <- s.intake.small.acquire(ctx, &three, largeRequest) }()
	eventually(t, "another to wait for room", s.intake.small.isContended)
	s.intake.sweep()
	require.Less(t, w.at.Load(), time.Now().Unix())

	w.at.Store(0)
	go out.Write([]byte("{}"))
	require.NoError(t, <-read)
	s.intake.sweep()
	require.Zero(t, w.at.Load(), "it is here, or is not read")
	cancel()
	require.Error(t, <-waited)
	done()
	require.Empty(t, s.intake.bodies)
}

// The requests of a connection share its link, so they share how soon they must come while others wait for their room.
// They never have more time than without that.
func TestHasteIsOfAConnection(t *testing.T) {
	require.Equal(t, haste{busyGrace, busyRate}, hasteOf(true, 1))
	require.Equal(t, haste{2 * busyGrace, busyRate / 2}, hasteOf(true, 2))
	require.Equal(t, haste{receiveGrace, receiveRate}, hasteOf(true, 100))
	require.Equal(t, haste{receiveGrace, receiveRate}, hasteOf(false, 1))
	require.Equal(t, busyGrace+8*time.Second, hasteOf(true, 0).allowed(largeRequest))
}
