package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// What clients may ask for besides etcd's API, in the metadata of their calls (docs/using/early-answers.md).
const (
	// metadataMode is the mode of a put: modeAccepted or modeConfirmed. The response has the mode in which it was
	// answered.
	metadataMode = "braid-mode"
	// metadataToken has tokens, separated by commas or one in each value. A read sees their commands, and
	// a write takes effect after them. The response to an accepted put has its token.
	metadataToken = "braid-token"
	// metadataRead is readBarrier: the read sees all that was accepted before it.
	metadataRead = "braid-read"

	modeAccepted  = "accepted"
	modeConfirmed = "confirmed"
	readBarrier   = "barrier"
)

// LanePrefix allows puts of keys with a prefix to use a lane, if they are blind (store.IsBlind).
type LanePrefix struct {
	Prefix string
	// Accepted: they are answered as soon as they are certain to take effect.
	Accepted bool
}

// ParseLanePrefix reads KEY, KEY=confirmed or KEY=accepted. A key with an = in it is written with its mode.
func ParseLanePrefix(text string) (LanePrefix, error) {
	p := LanePrefix{Prefix: text}
	if key, ok := strings.CutSuffix(text, "="+modeAccepted); ok {
		p = LanePrefix{key, true}
	} else if key, ok := strings.CutSuffix(text, "="+modeConfirmed); ok {
		p.Prefix = key
	}
	if at := strings.LastIndexByte(text, '='); p.Prefix == text && at >= 0 {
		return p, fmt.Errorf("lane prefix %q: %q is no mode: it is %s or %s; for a key that has an =, write the mode "+
			"behind it, as %s=%s", text, text[at+1:], modeAccepted, modeConfirmed, text, modeConfirmed)
	}
	if p.Prefix == "" {
		return p, fmt.Errorf("lane prefix %q: it is KEY, KEY=%s or KEY=%s", text, modeAccepted, modeConfirmed)
	}
	return p, nil
}

// putMode is how a put is proposed.
type putMode struct {
	// blind: it may use a lane. accepted: it is answered as soon as it is certain; it is blind then.
	blind, accepted bool
	// asked: the client named a mode. Then it is refused if it cannot be accepted now.
	asked bool
}

// named reports whether the response names the mode.
func (m *putMode) named() bool { return m.asked || m.blind }

// modeOf returns how a put is to be proposed: as its client asks, or as is configured for its key.
func (s *Server) modeOf(ctx context.Context, r *pb.PutRequest) (m putMode, err error) {
	switch v := metadata.ValueFromIncomingContext(ctx, metadataMode); {
	case len(v) == 0:
		if len(s.cfg.LanePrefixes) == 0 {
			return m, nil
		}
		m.blind, m.accepted = s.lane(r.Key)
	case len(v) > 1 || v[0] != modeAccepted && v[0] != modeConfirmed:
		return m, status.Errorf(codes.InvalidArgument, "braid: %s %q: it is %s or %s", metadataMode, v, modeAccepted,
			modeConfirmed)
	default:
		m = putMode{blind: true, accepted: v[0] == modeAccepted, asked: true}
	}
	m.blind = m.blind && store.IsBlind(r)
	m.accepted = m.accepted && m.blind && s.log.AnswersEarly()
	return m, nil
}

// lane finds the longest prefix of a key that is configured.
func (s *Server) lane(key []byte) (blind, accepted bool) {
	longest := 0
	for i := range s.cfg.LanePrefixes {
		p := &s.cfg.LanePrefixes[i]
		if len(p.Prefix) > longest && len(key) >= len(p.Prefix) && string(key[:len(p.Prefix)]) == p.Prefix {
			longest, blind, accepted = len(p.Prefix), true, p.Accepted
		}
	}
	return blind, accepted
}

// putAs carries out a put that may use a lane. The metadata of the response has the mode.
func (s *Server) putAs(ctx context.Context, r *pb.PutRequest, mode putMode) (resp *pb.PutResponse, err error) {
	said := metadata.Pairs(metadataMode, modeConfirmed)
	if mode.accepted {
		var token string
		resp, token, err = s.putAccepted(ctx, r)
		switch refused := (*store.NotAcceptedError)(nil); {
		case errors.As(err, &refused) && !mode.asked:
			mode.accepted = false
		case err != nil:
			return nil, toStatus(err)
		case token != "":
			said = metadata.Pairs(metadataMode, modeAccepted, metadataToken, token)
		}
	}
	if !mode.accepted {
		resp, err = proposeSpaceAs[*pb.PutResponse](ctx, s, &pb.InternalRaftRequest{Put: r},
			braid.ProposeOptions{Blind: mode.blind})
		if err != nil {
			return nil, err
		}
	}
	_ = grpc.SetHeader(ctx, said) // it fails only if no one reads it
	return resp, nil
}

// putAccepted carries out a put that is answered as soon as it is certain to take effect. It has no
// token if it was applied before that was known.
func (s *Server) putAccepted(ctx context.Context, r *pb.PutRequest) (resp *pb.PutResponse, token string, err error) {
	if err := s.early.fresh.ensure(ctx); err != nil {
		return nil, "", err
	}
	e, err := s.store.EncodeAccepted(r)
	if err != nil {
		return nil, "", err
	}
	answer, err := s.await(ctx, &e, braid.ProposeOptions{Mode: braid.ModeAccepted, Blind: true})
	if err != nil {
		return nil, "", err
	}
	if early, ok := answer.(*braid.Accepted); ok {
		return s.early.answer(ctx, r, &e, early)
	}
	result, err := resultOf(answer)
	if err == nil {
		err = result.Err
	}
	if err != nil {
		return nil, "", err
	}
	resp, ok := result.Resp.(*pb.PutResponse)
	if !ok {
		return nil, "", fmt.Errorf("etcdserver: a %T in answer to a put", result.Resp)
	}
	return resp, "", nil
}

// tokensOf returns the tokens of a call.
func tokensOf(ctx context.Context) (tokens []braid.Token, err error) {
	for _, v := range metadata.ValueFromIncomingContext(ctx, metadataToken) {
		for text := range strings.SplitSeq(v, ",") {
			t, err := braid.ParseToken(strings.TrimSpace(text))
			if err != nil {
				return nil, toStatus(err)
			}
			tokens = append(tokens, t)
		}
	}
	if len(tokens) > braid.MaxTokens {
		return nil, status.Errorf(codes.InvalidArgument, "braid: %d tokens, limit %d", len(tokens), braid.MaxTokens)
	}
	return tokens, nil
}

// readableAs is readable for a call whose metadata has what it must see.
func (s *Server) readableAs(ctx context.Context, local bool) error {
	tokens, err := tokensOf(ctx)
	if err != nil {
		return err
	}
	passageOf(ctx).reads() // its stages are not known: it waits for tokens too
	want := braid.ReadOptions{After: tokens, Local: local}
	if v := metadata.ValueFromIncomingContext(ctx, metadataRead); len(v) > 0 {
		if len(v) > 1 || v[0] != readBarrier {
			return status.Errorf(codes.InvalidArgument, "braid: %s %q: it is %s", metadataRead, v, readBarrier)
		}
		want.Barrier, want.Local = true, false
	}
	if len(tokens) > 0 {
		s.metrics.Tokens.Add(1)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.log.Read(ctx, want); err != nil {
		s.metrics.SlowReads.Add(1)
		return toStatus(err)
	}
	return nil
}

// asks reports whether the metadata of a call has what it must see.
func asks(ctx context.Context) bool {
	return len(metadata.ValueFromIncomingContext(ctx, metadataToken)) > 0 ||
		len(metadata.ValueFromIncomingContext(ctx, metadataRead)) > 0
}
