package server

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/braidlog/braid"
)

// The only service that etcd does not have. Its methods use Google's well-known messages, so no code needs to be
// generated.
const (
	adminService  = "braid.Admin"
	reshapeMethod = "Reshape"
	zonesMethod   = "Zones"
	tuneMethod    = "Tune"
	switchMethod  = "Switch"
	planMethod    = "PlanSwitch"
	adviseMethod  = "Advise"

	quotasMethod   = "PrefixQuotas"
	setQuotaMethod = "SetPrefixQuota"

	replaceMethod = "Replace"
	backupMethod  = "Backup"
	drainMethod   = "Drain"
)

// adminServer is the service braid.Admin.
type adminServer interface {
	// reshape changes the number of instances, and returns when the new number is active here.
	reshape(ctx context.Context, instances *wrapperspb.UInt32Value) (*emptypb.Empty, error)
	// setZones changes the zones of members, all at once.
	setZones(ctx context.Context, zones *structpb.Struct) (*emptypb.Empty, error)
	// tune changes settings, and returns all of them when the change is active here: see Tuned.
	tune(ctx context.Context, tuning *structpb.Struct) (*structpb.Struct, error)
	// switchTo changes the protocol, and returns the profile when the change is active here.
	switchTo(ctx context.Context, to *structpb.Struct) (*structpb.Struct, error)
	// planSwitch returns what switchTo would do: a [braid.SwitchPlan].
	planSwitch(ctx context.Context, to *structpb.Struct) (*structpb.Struct, error)
	// advise returns which change would fit the load better: an [Advised].
	advise(ctx context.Context, _ *emptypb.Empty) (*structpb.Struct, error)
	// prefixQuotas returns the quotas of prefixes: prefixUsages.
	prefixQuotas(ctx context.Context, _ *emptypb.Empty) (*structpb.Struct, error)
	// setPrefixQuota sets a [PrefixQuota], and returns all when the change is active here.
	setPrefixQuota(ctx context.Context, quota *structpb.Struct) (*structpb.Struct, error)
	// replaceMember makes a [Replacement], and returns what came of it when the change is active here: [Replaced].
	replaceMember(ctx context.Context, replacement *structpb.Struct) (*structpb.Struct, error)
	// backup sends an increment in pieces: see package increment. The question is a backupQuestion, as JSON.
	backup(question *wrapperspb.BytesValue, pieces grpc.ServerStream) error
	// drainMember passes a [Drain] on, and returns nothing.
	drainMember(ctx context.Context, drain *structpb.Struct) (*structpb.Struct, error)
}

var adminDesc = grpc.ServiceDesc{
	ServiceName: adminService,
	HandlerType: (*adminServer)(nil),
	Methods: []grpc.MethodDesc{
		adminMethod(reshapeMethod, adminServer.reshape),
		adminMethod(zonesMethod, adminServer.setZones),
		adminMethod(tuneMethod, adminServer.tune),
		adminMethod(switchMethod, adminServer.switchTo),
		adminMethod(planMethod, adminServer.planSwitch),
		adminMethod(adviseMethod, adminServer.advise),
		adminMethod(quotasMethod, adminServer.prefixQuotas),
		adminMethod(setQuotaMethod, adminServer.setPrefixQuota),
		adminMethod(replaceMethod, adminServer.replaceMember),
		adminMethod(drainMethod, adminServer.drainMember),
	},
	Streams: []grpc.StreamDesc{{StreamName: backupMethod, ServerStreams: true, Handler: serveBackup}},
}

// longestChange bounds the wait for a change of the cluster whose caller gives no deadline.
const longestChange = 5 * time.Minute

// forChange bounds the wait for a change of the cluster by the caller's deadline, not by the time for a request: a
// change waits for members, and for what they replicate. It returns once this member knows that the caller may do that.
func (s *Server) forChange(ctx context.Context) (within context.Context, cancel context.CancelFunc, err error) {
	if _, given := ctx.Deadline(); given {
		within, cancel = context.WithCancel(ctx)
	} else {
		within, cancel = context.WithTimeout(ctx, longestChange)
	}
	err = s.log.ReadBarrier(within)
	for errors.Is(err, braid.ErrReadTimeout) && within.Err() == nil {
		err = s.log.ReadBarrier(within) // the call before waited as long as a read does
	}
	if err == nil {
		err = s.store.Rights().RequireAdmin(within)
	}
	return within, cancel, toStatus(err)
}

// detached completes something also if the client of ctx no longer waits, within a limited time, and until the server
// stops.
func (s *Server) detached(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	done := make(chan error, 1)
	s.background.Go(func() {
		within, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		go func() {
			select {
			case <-s.stopping:
				cancel()
			case <-within.Done():
			}
		}()
		done <- do(within)
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// message is a message of type T.
type message[T any] interface {
	*T
	proto.Message
}

// adminMethod describes a method of the service.
func adminMethod[T, A any, Q message[T], R message[A]](
	name string, serve func(adminServer, context.Context, Q) (R, error),
) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error,
		intercept grpc.UnaryServerInterceptor) (any, error) {
		question := Q(new(T))
		if err := decode(question); err != nil {
			return nil, err
		}
		info := &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + adminService + "/" + name}
		return intercept(ctx, question, info, func(ctx context.Context, q any) (any, error) {
			return serve(srv.(adminServer), ctx, q.(Q))
		})
	}}
}

// callAdmin calls a method of a member.
func callAdmin(
	ctx context.Context, member grpc.ClientConnInterface, method string, question, answer proto.Message,
) error {
	return member.Invoke(ctx, "/"+adminService+"/"+method, question, answer)
}

// askAdmin calls a method of a member whose question and answer are those of another type, as JSON.
func askAdmin(ctx context.Context, member grpc.ClientConnInterface, method string, question, answer any) error {
	q, a := new(structpb.Struct), new(structpb.Struct)
	b, err := json.Marshal(question)
	if err == nil {
		err = protojson.Unmarshal(b, q)
	}
	if err == nil {
		err = callAdmin(ctx, member, method, q, a)
	}
	if err != nil {
		return err
	}
	return fromStruct(a, answer)
}

// fromStruct reads what a message has as JSON.
func fromStruct(m *structpb.Struct, to any) error {
	b, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}

// toStruct is an answer with the same JSON as a value.
func toStruct(answer any) (*structpb.Struct, error) {
	m := new(structpb.Struct)
	b, err := json.Marshal(answer)
	if err == nil {
		err = protojson.Unmarshal(b, m)
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return m, nil
}
