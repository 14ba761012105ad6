package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"sync"

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
		w.Header().Set("WWW-Authenticate", `Basic realm="braid", charset="UTF-8"`)
		http.Error(w, "auth is on: "+err.Error(), http.StatusUnauthorized)
	})
}

func (s *Server) checkUser(r *http.Request) error {
	if err := s.store.RequireAuth(withoutUser); err == nil {
		return nil // auth is off
	}
	if user, password, ok := r.BasicAuth(); ok {
		return s.checkPassword(user, password)
	}
	return s.store.RequireAuth(callContext(r))
}

func (s *Server) checkPassword(user, password string) error {
	digest := s.passwords.digest(user, password)
	if s.passwords.known(digest, s.store.Auth().Revision()) {
		return nil
	}
	login, err := s.store.Login(&pb.AuthenticateRequest{Name: user, Password: password})
	if errors.Is(err, auth.ErrAuthNotEnabled) {
		return nil // it was turned off meanwhile
	}
	if err == nil {
		s.passwords.note(digest, login.Revision)
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
	if conn, ok := r.Context().Value(connKey{}).(*sniffedConn); ok && conn.tls != nil {
		ctx = peer.NewContext(ctx, &peer.Peer{AuthInfo: credentials.TLSInfo{State: conn.tls.ConnectionState()}})
	}
	return ctx
}

// maxKnownPasswords bounds how many passwords knownPasswords remembers.
const maxKnownPasswords = 64

// knownPasswords remembers which passwords were right at a revision of auth, because a page that
// reloads itself sends its user's password every time, and comparing one is expensive on purpose.
type knownPasswords struct {
	key [sha256.Size]byte // of this life

	mu       sync.Mutex
	revision uint64
	right    map[[sha256.Size]byte]struct{}
}

func newKnownPasswords() *knownPasswords {
	k := &knownPasswords{right: map[[sha256.Size]byte]struct{}{}}
	rand.Read(k.key[:]) // never fails
	return k
}

func (k *knownPasswords) digest(user, password string) (d [sha256.Size]byte) {
	h := hmac.New(sha256.New, k.key[:])
	h.Write([]byte(user))
	h.Write([]byte{0})
	h.Write([]byte(password))
	h.Sum(d[:0])
	return d
}

func (k *knownPasswords) known(digest [sha256.Size]byte, revision uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.right[digest]
	return ok && k.revision == revision
}

func (k *knownPasswords) note(digest [sha256.Size]byte, revision uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.revision != revision || len(k.right) >= maxKnownPasswords {
		clear(k.right)
	}
	k.revision = revision
	k.right[digest] = struct{}{}
}
