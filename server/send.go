package server

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// sendTimeout is how long a client may leave a message of a stream untaken.
const sendTimeout = time.Minute

// errNotTaken ends the stream of a client that does not read it. A retry is safe.
var errNotTaken = status.Error(codes.DeadlineExceeded, "etcdserver: the client did not take what it asked for")

// sendWithin sends a message of a stream, and fails once the client has not read it for timeout. Sending then continues
// in the background until the call has ended: the caller must end it and send nothing more.
func sendWithin(ctx context.Context, timeout time.Duration, send func() error) error {
	sent := make(chan error, 1)
	go func() { sent <- send() }()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case err := <-sent:
		return err
	case <-timer.C:
		return errNotTaken
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
