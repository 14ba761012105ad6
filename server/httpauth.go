package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/auth"
)

// forUsers serves a request as MemberList is served: while auth is on, only to a user. A request
// names its user as a call through the gateway does, with a token in Authorization, or by its
// certificate; or with a password, as browsers do (RFC 7617). A password is compared with what this
// member has applied, so it is of use without a majority too.
func (s *Server) forUsers(handler http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := s.checkUser(r)
		if err == nil {
			handler(w, r)
			return
		}
		if !errors.Is(err, auth.ErrUserEmpty) { // a request without a user is no login
			s.refusals.logins.add(r.RemoteAddr, err)
		}
		if r.Header.Get(ownForm) == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="braid", charset="UTF-8"`)
		}
		http.Error(w, "auth is on: "+err.Error(), http.StatusUnauthorized)
	})
}

// ownForm is the header by which the dashboard says that it asks for a password itself. Without it a browser does.
const ownForm = "Braid-Page"

func (s *Server) checkUser(r *http.Request) error {
	if err := s.store.Rights().RequireAuth(withoutUser); err == nil {
		return nil // auth is off
	}
	if user, password, ok := r.BasicAuth(); ok {
		return s.checkPassword(r.Context(), user, password)
	}
	return s.store.Rights().RequireAuth(callContext(r))
}

func (s *Server) checkPassword(ctx context.Context, user, password string) error {
	_, err := s.store.Rights().Login(ctx, &pb.AuthenticateRequest{Name: user, Password: password})
	if errors.Is(err, auth.ErrAuthNotEnabled) {
		return nil // it was turned off meanwhile
	}
	return err
}

// withoutUser is the context of a call that names no user.
var withoutUser = metadata.NewIncomingContext(context.Background(), metadata.MD{})

// callContext is the context that a gRPC call would have which came as r came.
func callContext(r *http.Request) context.Context {
	md := metadata.MD{}
	if token := r.Header.Get("Authorization"); token != "" {
		md.Set(rpctypes.TokenFieldNameGRPC, strings.TrimPrefix(token, "Bearer "))
	}
	ctx := metadata.NewIncomingContext(r.Context(), md)
	if state := tlsOf(r); state != nil {
		ctx = peer.NewContext(ctx, &peer.Peer{AuthInfo: credentials.TLSInfo{State: *state}})
	}
	return ctx
}
