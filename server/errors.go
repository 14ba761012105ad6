package server

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/auth"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// statuses has what clients get for an error. clientv3 decides by code and text whether to try again. So an error of a
// request that may have happened must never look like one of a request that did not.
var statuses = []struct{ err, status error }{
	{mvcc.ErrCompacted, rpctypes.ErrGRPCCompacted},
	{mvcc.ErrFutureRev, rpctypes.ErrGRPCFutureRev},
	{etcderrors.ErrKeyNotFound, rpctypes.ErrGRPCKeyNotFound},
	{etcderrors.ErrNoSpace, rpctypes.ErrGRPCNoSpace},
	{etcderrors.ErrCorrupt, rpctypes.ErrGRPCCorrupt},
	{etcderrors.ErrRequestTooLarge, rpctypes.ErrGRPCRequestTooLarge},
	{etcderrors.ErrStopped, rpctypes.ErrGRPCStopped},

	{lease.ErrLeaseNotFound, rpctypes.ErrGRPCLeaseNotFound},
	{lease.ErrLeaseExists, rpctypes.ErrGRPCLeaseExist},
	{lease.ErrLeaseTTLTooLarge, rpctypes.ErrGRPCLeaseTTLTooLarge},
	{lease.ErrNotPrimary, rpctypes.ErrGRPCLeaderChanged},

	{auth.ErrRootUserNotExist, rpctypes.ErrGRPCRootUserNotExist},
	{auth.ErrRootRoleNotExist, rpctypes.ErrGRPCRootRoleNotExist},
	{auth.ErrUserAlreadyExist, rpctypes.ErrGRPCUserAlreadyExist},
	{auth.ErrUserEmpty, rpctypes.ErrGRPCUserEmpty},
	{auth.ErrUserNotFound, rpctypes.ErrGRPCUserNotFound},
	{auth.ErrRoleAlreadyExist, rpctypes.ErrGRPCRoleAlreadyExist},
	{auth.ErrRoleNotFound, rpctypes.ErrGRPCRoleNotFound},
	{auth.ErrRoleEmpty, rpctypes.ErrGRPCRoleEmpty},
	{auth.ErrAuthFailed, rpctypes.ErrGRPCAuthFailed},
	{auth.ErrPermissionNotGiven, rpctypes.ErrGRPCPermissionNotGiven},
	{auth.ErrPermissionDenied, rpctypes.ErrGRPCPermissionDenied},
	{auth.ErrRoleNotGranted, rpctypes.ErrGRPCRoleNotGranted},
	{auth.ErrPermissionNotGranted, rpctypes.ErrGRPCPermissionNotGranted},
	{auth.ErrAuthNotEnabled, rpctypes.ErrGRPCAuthNotEnabled},
	{auth.ErrInvalidAuthToken, rpctypes.ErrGRPCInvalidAuthToken},
	{auth.ErrInvalidAuthMgmt, rpctypes.ErrGRPCInvalidAuthMgmt},
	{auth.ErrAuthOldRevision, rpctypes.ErrGRPCAuthOldRevision},

	{store.ErrTooManyPasswords, rpctypes.ErrGRPCRequestTooManyRequests},
	{braid.ErrOverloaded, rpctypes.ErrGRPCRequestTooManyRequests},
	{braid.ErrTooLarge, rpctypes.ErrGRPCRequestTooLarge},
	{braid.ErrNoLeader, rpctypes.ErrGRPCNoLeader},
	{braid.ErrMaybeCommitted, rpctypes.ErrGRPCTimeout},
	{braid.ErrResultUnknown, rpctypes.ErrGRPCTimeout},
	{braid.ErrReadTimeout, rpctypes.ErrGRPCTimeout},
	{store.ErrRestored, rpctypes.ErrGRPCTimeout},
	{braid.ErrStopped, rpctypes.ErrGRPCStopped},
}

// toStatus converts any error into the gRPC status that etcd has for it; nil stays nil.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, already := status.FromError(err); already {
		return err
	}
	for i := range statuses {
		if errors.Is(err, statuses[i].err) {
			return statuses[i].status
		}
	}
	if errors.As(err, new(*store.DamageError)) {
		return errDamaged
	}
	var refused *braid.RefusedError
	if errors.As(err, &refused) {
		return refusal(refused)
	}
	if code := orderCode(err); code != codes.OK {
		return status.Error(code, "etcdserver: "+err.Error())
	}
	if code := valueCode(err); code != codes.OK {
		return status.Error(code, "etcdserver: "+err.Error())
	}
	switch {
	case errors.Is(err, context.Canceled):
		return rpctypes.ErrGRPCCanceled
	case errors.Is(err, context.DeadlineExceeded):
		return rpctypes.ErrGRPCDeadlineExceeded
	}
	return status.Error(codes.Unknown, err.Error())
}

// orderCode is the code for a request about the order of commands, or beyond a quota, or of a backup of something else,
// that cannot be fulfilled; OK for any other error. Nothing happened.
func orderCode(err error) codes.Code {
	var token *braid.TokenError
	switch {
	case errors.As(err, &token) && token.State == braid.TokenGone, errors.As(err, new(*store.NotAcceptedError)):
		return codes.FailedPrecondition
	case token != nil:
		return codes.Unavailable
	case errors.As(err, new(*braid.ProposeOptionsError)):
		return codes.InvalidArgument
	case errors.As(err, new(*store.PrefixQuotaError)):
		return codes.ResourceExhausted
	case errors.As(err, new(*store.BehindError)):
		return codes.Unavailable
	case errors.As(err, new(*store.OtherHistoryError)):
		return codes.FailedPrecondition
	}
	return codes.OK
}

// valueCode is the code for large values that cannot be read; OK for any other error. Clients repeat an Unavailable
// request until their time is over. So a value that is lost according to all members has another code.
func valueCode(err error) codes.Code {
	var value *store.ValueError
	var response *store.ResponseError
	var body *braid.BodyError
	switch {
	case errors.Is(err, context.Canceled):
		return codes.OK
	case errors.Is(err, store.ErrWrongBytes), errors.As(err, &body) && body.Certain():
		return codes.DataLoss
	case errors.As(err, &value), errors.Is(err, store.ErrUnresolved):
		return codes.Unavailable
	case errors.As(err, &response):
		return codes.ResourceExhausted
	}
	return codes.OK
}

// refusal is the status of a refused membership change or transfer. It has the reason's own text
// if etcd has no error for it.
func refusal(r *braid.RefusedError) error {
	switch r.Reason {
	case braid.ReasonPeerURLTaken:
		return rpctypes.ErrGRPCPeerURLExist
	case braid.ReasonRemoved: // another member may serve the request, as when this one stops
		return rpctypes.ErrGRPCStopped
	}
	code := codes.FailedPrecondition
	if r.Retryable() {
		code = codes.Unavailable
	}
	return status.Error(code, "etcdserver: "+r.Error())
}
