package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// A command is one byte with its kind, and the fields of that kind:
//
//	request   an etcd request, as etcd's log holds it (a protobuf InternalRaftRequest)
//	claim     the id of the member that wants to be the primary lessor, and a random number
//	          (8 bytes each, big endian)
//	guarded   the claim's position (8 bytes) and a request, which counts only while that
//	          claim is the newest one
//	numbered  the claim's position, a number (8 bytes each) and a request, which counts only
//	          while that claim is the newest one, and after no greater number under it
//	large     the values of the request's records, and what must not have changed (see
//	          large.go), and a request
//	accepted  a request or large command, which is a put that is applied whatever has changed
//	          since it was encoded, unless it is closed (see accepted.go)
//	quota     a quota of a prefix (see prefixquota.go), as JSON
//	count     the prefix of a quota: a step of counting its keys (see prefixcount.go)
//	close     an auth revision (8 bytes): accepted puts of up to there are closed
//
// A command of no bytes does nothing.
const (
	kindRequest  = 'r'
	kindClaim    = 'c'
	kindGuarded  = 'g'
	kindNumbered = 'n'
	kindLarge    = 'l'
	kindAccepted = 'a'
	kindClose    = 'u'
	kindQuota    = 'q'
	kindCount    = 'k'
)

// ErrBadCommand is the result of a command that cannot be understood, or that etcd's code would treat as an impossible
// situation. It has no effect, on any member.
var ErrBadCommand = errors.New("store: malformed command")

// command is a decoded command.
type command struct {
	kind    byte
	claim   claim  // claim: member and nonce
	guard   uint64 // guarded, numbered: position of the claim
	number  uint64 // numbered; close: the auth revision
	quota   PrefixQuota
	prefix  string // count
	request *pb.InternalRaftRequest
	// accepted: the request is applied without checks.
	accepted bool

	// Of a command with large values:

	body      *BodyRef
	values    map[record]uint32 // where in the body they begin
	unchanged []unchanged
}

func decode(data []byte) (c command, err error) {
	c.kind, data = data[0], data[1:]
	switch {
	case c.kind == kindClaim && len(data) == 16:
		c.claim.member = binary.BigEndian.Uint64(data)
		c.claim.nonce = binary.BigEndian.Uint64(data[8:])
		return c, nil
	case c.kind == kindClose && len(data) == 8:
		c.number = binary.BigEndian.Uint64(data)
		return c, nil
	case c.kind == kindQuota:
		c.quota, err = decodeQuota(data)
		return c, err
	case c.kind == kindCount:
		c.prefix = string(data)
		return c, nil
	case c.kind == kindGuarded && len(data) >= 8:
		c.guard, data = binary.BigEndian.Uint64(data), data[8:]
	case c.kind == kindNumbered && len(data) >= 16:
		c.guard, c.number, data = binary.BigEndian.Uint64(data), binary.BigEndian.Uint64(data[8:]), data[16:]
	case c.kind == kindAccepted:
		return decodeAccepted(data)
	case c.kind == kindLarge:
		if data, err = c.decodeLarge(data); err != nil {
			return c, err
		}
	case c.kind != kindRequest:
		return c, fmt.Errorf("%w: %d bytes of kind %q", ErrBadCommand, len(data), c.kind)
	}
	c.request = new(pb.InternalRaftRequest)
	if err := proto.Unmarshal(data, c.request); err != nil {
		return c, fmt.Errorf("%w: %w", ErrBadCommand, err)
	}
	return c, checkOrdered(c.request)
}

// encode prepends a prefix to a request.
func encode(prefix []byte, r *pb.InternalRaftRequest) ([]byte, error) {
	data := make([]byte, len(prefix), len(prefix)+proto.Size(r))
	copy(data, prefix)
	return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(data, r)
}

func guardedPrefix(position uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kindGuarded}, position)
}

func numberedPrefix(position, number uint64) []byte {
	b := binary.BigEndian.AppendUint64([]byte{kindNumbered}, position)
	return binary.BigEndian.AppendUint64(b, number)
}

// Encoded is a request in the form in which it is proposed, with the state that is needed to answer it.
type Encoded struct {
	// Command is what members apply.
	Command []byte
	// Body are the command's large values; nil if it has none. It may alias the request.
	Body []byte
	// AuthRevision of the users and roles by which the request was encoded; 0: of none.
	AuthRevision uint64
	// request is the one that the client made, if its answer has to be worked on.
	request *pb.InternalRaftRequest
}

// Encode returns the command that carries out a request for the user whose token or certificate
// ctx carries. It sets r.Header, draws an id for a lease that has none, and replaces a password by
// its hash, which is slow on purpose and waits its turn (bcrypt). Values of Options.LargeValueBytes or more go into
// the command's body, so the request must not be changed any more. Errors: etcd's for a bad token,
// [ErrBadCommand] for a request that no state machine accepts, [ErrTooManyPasswords].
func (s *Store) Encode(ctx context.Context, r *pb.InternalRaftRequest) (Encoded, error) {
	return s.encodeAs(ctx, r, nil, nil)
}

// encodeAs is Encode of a request that counts only if some things have not changed, with something
// before the kind of the command.
func (s *Store) encodeAs(ctx context.Context, r *pb.InternalRaftRequest, u []unchanged,
	before []byte) (e Encoded, err error) {
	if err := check(r); err != nil {
		return e, err
	}
	r.Header = nil
	if r.Authenticate == nil {
		user, err := s.rights.AuthInfo(ctx)
		if err != nil {
			return e, err
		}
		if user != nil {
			r.Header = &pb.RequestHeader{Username: user.Username, AuthRevision: user.Revision}
		}
	}
	if err := s.rights.complete(ctx, r); err != nil {
		return e, err
	}
	return s.encodeReady(r, u, before)
}

// encodeReady is encodeAs of a request that is complete.
func (s *Store) encodeReady(r *pb.InternalRaftRequest, u []unchanged, before []byte) (e Encoded, err error) {
	e.AuthRevision = r.GetHeader().GetAuthRevision()
	if r.Put != nil || r.Txn != nil {
		if m := s.extract(r); m.changed() || len(u) > 0 {
			e.Body, e.request = m.body(), r
			e.Command, err = encode(append(before, m.prefix(u)...), m.request)
			return e, err
		}
	}
	e.Command, err = encode(append(before, kindRequest), r)
	return e, err
}

// complete makes the decisions, before ordering, that members could not make equally afterwards.
func (r *Rights) complete(ctx context.Context, request *pb.InternalRaftRequest) (err error) {
	switch {
	case request.LeaseGrant != nil && request.LeaseGrant.ID == 0:
		request.LeaseGrant = proto.Clone(request.LeaseGrant).(*pb.LeaseGrantRequest)
		request.LeaseGrant.ID = r.leaseIDs.next()
	case request.AuthUserAdd != nil && (request.AuthUserAdd.Options == nil || !request.AuthUserAdd.Options.NoPassword):
		request.AuthUserAdd = proto.Clone(request.AuthUserAdd).(*pb.AuthUserAddRequest)
		request.AuthUserAdd.HashedPassword, err = r.hash(ctx, request.AuthUserAdd.Password)
		request.AuthUserAdd.Password = ""
	case request.AuthUserChangePassword != nil && request.AuthUserChangePassword.Password != "":
		request.AuthUserChangePassword = proto.Clone(request.AuthUserChangePassword).(*pb.AuthUserChangePasswordRequest)
		request.AuthUserChangePassword.HashedPassword, err = r.hash(ctx, request.AuthUserChangePassword.Password)
		request.AuthUserChangePassword.Password = ""
	}
	if err != nil {
		return err
	}
	return checkPasswords(request)
}

func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}
