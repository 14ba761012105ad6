package mapkv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/braidlog/braid"
)

const (
	maxKey = 4 << 10
	// MaxValue is the largest value, in bytes.
	MaxValue = 16 << 20
	// DefaultTimeout bounds a request, or a chunk of a large value.
	DefaultTimeout = 10 * time.Second
	// DefaultBodyBytes is the size from which on values are bodies.
	DefaultBodyBytes = 16 << 10
)

// Log is the part of a node that the service uses; [braid.Node] is one.
type Log interface {
	ProposeWith(ctx context.Context, command, body []byte, o braid.ProposeOptions) (result any, err error)
	Body(ctx context.Context, ref braid.BodyRef) ([]byte, error)
	ReadBarrier(ctx context.Context) error
	Status() braid.Status
	Done() <-chan struct{}
	Err() error
}

// service answers the requests to one member.
type service struct {
	log       Log
	state     State
	grouped   bool // the keys have no common order: a read is a command in its group's
	timeout   time.Duration
	bodyBytes int
}

// Handler returns the service of a member whose state machine is state. timeout bounds each request; 0 means
// [DefaultTimeout]. Values from bodyBytes on become bodies; 0 means [DefaultBodyBytes], less than 0 none. With
// [Groups] there are none, and every read is a command in the log of its group: the read indexes of all groups would
// be more expensive.
func Handler(log Log, state State, timeout time.Duration, bodyBytes int) http.Handler {
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	if bodyBytes == 0 {
		bodyBytes = DefaultBodyBytes
	}
	_, grouped := state.(Groups)
	s := &service{log, state, grouped, timeout, bodyBytes}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /kv/{key...}", s.get)
	mux.HandleFunc("PUT /kv/{key...}", s.put)
	mux.HandleFunc("POST /kv/{key...}", s.extend)
	mux.HandleFunc("DELETE /kv/{key...}", s.remove)
	mux.HandleFunc("POST /append", s.append)
	mux.HandleFunc("GET /status", s.status)
	return mux
}

// key returns the key of a request; if it is not one, the request is answered and ok false.
func key(w http.ResponseWriter, r *http.Request) (key string, ok bool) {
	key = r.PathValue("key")
	switch {
	case key == "":
		http.Error(w, "no key: /kv/KEY", http.StatusBadRequest)
	case len(key) > maxKey:
		http.Error(w, fmt.Sprintf("key of %d bytes: at most %d", len(key), maxKey), http.StatusRequestEntityTooLarge)
	default:
		return key, true
	}
	return "", false
}

// body reads a request's body; if that fails, the request is answered and ok false.
func body(w http.ResponseWriter, r *http.Request) (data []byte, ok bool) {
	in := http.MaxBytesReader(w, r.Body, MaxValue)
	var err error
	if n := r.ContentLength; n >= 0 && n <= MaxValue {
		data = make([]byte, n)
		_, err = io.ReadFull(in, data)
	} else {
		data, err = io.ReadAll(in)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		http.Error(w, fmt.Sprintf("value of more than %d bytes", MaxValue), http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(w, "body: "+err.Error(), http.StatusBadRequest)
	default:
		return data, true
	}
	return nil, false
}

func (s *service) get(w http.ResponseWriter, r *http.Request) {
	k, ok := key(w, r)
	if !ok {
		return
	}
	query := r.URL.Query()
	if query.Has("ordered") || s.grouped && !query.Has("stale") {
		if result, ok := s.propose(w, r, opGet, k, nil); ok {
			value := result.(found).value
			s.answer(w, r, value, len(value.Chunks) > 0)
		}
		return
	}
	if !query.Has("stale") {
		ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
		defer cancel()
		if err := s.log.ReadBarrier(ctx); err != nil {
			fail(w, err)
			return
		}
	}
	value, ok := s.state.Get(k)
	s.answer(w, r, value, ok)
}

// answer answers a read.
func (s *service) answer(w http.ResponseWriter, r *http.Request, value Value, ok bool) {
	if !ok {
		http.Error(w, "no such key", http.StatusNotFound)
		return
	}
	s.send(r.Context(), w, value)
}

// send streams a value, with one chunk in memory at a time. It has the first chunk before the answer begins, so an
// error there has a status code. A later error aborts the answer.
func (s *service) send(ctx context.Context, w http.ResponseWriter, value Value) {
	for i := range value.Chunks {
		data, err := s.bytes(ctx, &value.Chunks[i])
		if err != nil && i > 0 {
			panic(http.ErrAbortHandler) // ends the connection before Content-Length is reached
		}
		if err != nil {
			fail(w, err)
			return
		}
		if i == 0 {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Length", strconv.FormatInt(value.Size, 10))
		}
		if _, err := w.Write(data); err != nil {
			return // the client is gone
		}
	}
}

// bytes returns the bytes of a chunk. A body that this member does not hold whole is assembled from other members'
// fragments.
func (s *service) bytes(ctx context.Context, c *Chunk) ([]byte, error) {
	if c.Body.Size == 0 {
		return c.Bytes, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.log.Body(ctx, c.Body)
}

func (s *service) put(w http.ResponseWriter, r *http.Request) { s.set(w, r, opPut) }

func (s *service) extend(w http.ResponseWriter, r *http.Request) { s.set(w, r, opExtend) }

func (s *service) set(w http.ResponseWriter, r *http.Request, op operation) {
	k, ok := key(w, r)
	if !ok {
		return
	}
	if value, ok := body(w, r); ok {
		s.write(w, r, op, k, value)
	}
}

func (s *service) remove(w http.ResponseWriter, r *http.Request) {
	if k, ok := key(w, r); ok {
		s.write(w, r, opDelete, k, nil)
	}
}

// write proposes a command that has no result and answers the request.
func (s *service) write(w http.ResponseWriter, r *http.Request, op operation, key string, value []byte) {
	if _, ok := s.propose(w, r, op, key, value); ok {
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *service) append(w http.ResponseWriter, r *http.Request) {
	data, ok := body(w, r)
	if !ok {
		return
	}
	if result, ok := s.propose(w, r, opAppend, "", data); ok {
		fmt.Fprintln(w, result)
	}
}

// propose proposes a command; if that fails, the request is answered and ok false. value may become the body without
// a copy: it is never changed.
func (s *service) propose(w http.ResponseWriter, r *http.Request, op operation, key string,
	value []byte) (result any, ok bool) {
	ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
	defer cancel()
	var err error
	touches := braid.ProposeOptions{Keys: []uint64{hash(key)}}
	if s.bodyBytes > 0 && len(value) >= s.bodyBytes {
		result, err = s.log.ProposeWith(ctx, command(op, key, nil), value, touches)
	} else {
		result, err = s.log.ProposeWith(ctx, command(op, key, value), nil, touches)
	}
	if err == nil {
		err, _ = result.(error)
	}
	if err != nil {
		fail(w, err)
		return nil, false
	}
	return result, true
}

// hash returns the hash of a command's key, for protocols that order only commands with a common key. It is the same
// on all members. Appended data has the key "".
func hash(key string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, key) // it never fails
	return h.Sum64()
}

// fail answers with an error: the status code tells whether a retry is safe.
func fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	var incomplete *braid.BodyError
	switch {
	case errors.Is(err, braid.ErrTooLarge), errors.Is(err, ErrValueFull):
		code = http.StatusRequestEntityTooLarge
	case errors.Is(err, braid.ErrMaybeCommitted), errors.Is(err, braid.ErrResultUnknown), errors.Is(err, braid.ErrStopped):
		code = http.StatusGatewayTimeout
	case errors.As(err, &incomplete), errors.Is(err, braid.ErrNoLeader), errors.Is(err, braid.ErrNotSent),
		errors.Is(err, braid.ErrOverloaded), errors.Is(err, braid.ErrReadTimeout):
		code = http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		code = http.StatusGatewayTimeout
	}
	http.Error(w, err.Error(), code)
}

// Status is the answer to GET /status.
type Status struct {
	Member  string `json:"member"`
	Leader  string `json:"leader"` // "" while none is known
	Members int    `json:"members"`
	Ready   bool   `json:"ready"`
	Keys    int    `json:"keys"`
	// Appended counts the commands of POST /append.
	Appended    uint64 `json:"appended"`
	Applied     uint64 `json:"applied"`
	EgressBytes int64  `json:"egress_bytes"` // to other members
	Syncs       uint64 `json:"syncs"`        // of this member's log
	Placement   string `json:"placement"`    // what members keep of bodies
	BodyBytes   int64  `json:"body_bytes"`   // held here, whole or as fragments
}

func (s *service) status(w http.ResponseWriter, r *http.Request) {
	st := s.log.Status()
	out := Status{
		Member: st.Self.String(), Members: len(st.Members), Ready: braid.Ready(r.Context(), s.log) == nil,
		Applied:     uint64(st.Applied),
		EgressBytes: int64(st.Links.EgressBytes), Syncs: uint64(st.Log.Syncs),
		Placement: st.Placement, BodyBytes: st.Bodies.LiveBytes,
	}
	if l := st.Leader(); l != 0 {
		out.Leader = l.String()
	}
	out.Keys, out.Appended = s.state.Len()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}
