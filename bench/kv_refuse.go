package bench

import (
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// RefusedError ends a run whose requests the servers refuse permanently.
type RefusedError struct {
	Why string // and what to do
	Err error  // the servers'
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %v", e.Why, e.Err) }

func (e *RefusedError) Unwrap() error { return e.Err }

// errMapTooLarge indicates a value that is too large for the map service.
var errMapTooLarge = errors.New("the map service takes no value so large")

// refusalOf returns the advice for an error that will come again; "" for any other error.
func refusalOf(err error) string {
	s := grpcstatus.Convert(err)
	switch {
	case s.Message() == rpctypes.ErrorDesc(rpctypes.ErrGRPCNoSpace):
		return "the servers' database is full: start them with a larger --quota-backend-bytes, or lower the size of " +
			"values, the keys or the time"
	case s.Message() == rpctypes.ErrorDesc(rpctypes.ErrGRPCRequestTooLarge), errors.Is(err, errMapTooLarge),
		s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "larger than max"):
		return "the servers take no request so large: start them with a larger --max-request-bytes, or lower " +
			"the size of values"
	}
	return ""
}
