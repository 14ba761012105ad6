package mapkv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// DefaultTimeout is how long a request may take.
	DefaultTimeout = 10 * time.Second
)

// Log is what the service needs of a node; [braid.Node] is one.
type Log interface {
	Propose(ctx context.Context, command []byte) (result any, err error)
	ReadBarrier(ctx context.Context) error
	Status() braid.Status
}

// service answers the requests to one member.
type service struct {
	log     Log
	state   *Map
	timeout time.Duration
}

// Handler returns the service of a member whose state machine is state. timeout bounds
// each request; 0 means [DefaultTimeout].
func Handler(log Log, state *Map, timeout time.Duration) http.Handler {
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	s := &service{log, state, timeout}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /kv/{key...}", s.get)
	mux.HandleFunc("PUT /kv/{key...}", s.put)
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
	if !r.URL.Query().Has("stale") {
		ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
		defer cancel()
		if err := s.log.ReadBarrier(ctx); err != nil {
			fail(w, err)
			return
		}
	}
	value, ok := s.state.Get(k)
	if !ok {
		http.Error(w, "no such key", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(value)))
	_, _ = w.Write(value) // a client that went away needs no answer
}

func (s *service) put(w http.ResponseWriter, r *http.Request) {
	k, ok := key(w, r)
	if !ok {
		return
	}
	if value, ok := body(w, r); ok {
		s.write(w, r, command(opPut, k, value))
	}
}

func (s *service) remove(w http.ResponseWriter, r *http.Request) {
	if k, ok := key(w, r); ok {
		s.write(w, r, command(opDelete, k, nil))
	}
}

// write proposes a command that has no result and answers the request.
func (s *service) write(w http.ResponseWriter, r *http.Request, command []byte) {
	if _, ok := s.propose(w, r, command); ok {
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *service) append(w http.ResponseWriter, r *http.Request) {
	data, ok := body(w, r)
	if !ok {
		return
	}
	if result, ok := s.propose(w, r, command(opAppend, "", data)); ok {
		fmt.Fprintln(w, result)
	}
}

// propose proposes a command; if that fails, the request is answered and ok false.
func (s *service) propose(w http.ResponseWriter, r *http.Request, command []byte) (result any, ok bool) {
	ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
	defer cancel()
	result, err := s.log.Propose(ctx, command)
	if err == nil {
		err, _ = result.(error)
	}
	if err != nil {
		fail(w, err)
		return nil, false
	}
	return result, true
}

// fail answers with an error: the status code says whether a retry is safe.
func fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	switch {
	case errors.Is(err, braid.ErrTooLarge):
		code = http.StatusRequestEntityTooLarge
	case errors.Is(err, braid.ErrMaybeCommitted), errors.Is(err, braid.ErrResultUnknown), errors.Is(err, braid.ErrStopped):
		code = http.StatusGatewayTimeout
	case errors.Is(err, braid.ErrNoLeader), errors.Is(err, braid.ErrOverloaded), errors.Is(err, braid.ErrReadTimeout):
		code = http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		code = http.StatusGatewayTimeout
	}
	http.Error(w, err.Error(), code)
}

// Status is what GET /status answers.
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
}

func (s *service) status(w http.ResponseWriter, _ *http.Request) {
	st := s.log.Status()
	out := Status{
		Member: st.Self.String(), Members: len(st.Members), Ready: st.Ready, Applied: uint64(st.Applied),
		EgressBytes: int64(st.Links.EgressBytes), Syncs: uint64(st.Log.Syncs),
	}
	if l := st.Leader(); l != 0 {
		out.Leader = l.String()
	}
	out.Keys, out.Appended = s.state.Len()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}
