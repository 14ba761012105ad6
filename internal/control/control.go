package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// Cluster is a cluster that can be operated. Its methods may be called concurrently, and return soon: what takes longer
// continues, and State shows it. An error that is not an *[Error] is the cluster's own failure.
type Cluster interface {
	State() State
	// Learn records the present protocol, as a member reported it.
	Learn(protocol string)
	// Operate performs an action on a member, by its name.
	Operate(ctx context.Context, member string, a Action) error
	// Switch begins to change the protocol, for the user of a token; "": none.
	Switch(protocol, token string) error
	// StartLoad starts a load, for the user of a token; "": none.
	StartLoad(l LoadSpec, token string) error
	StopLoad() error
}

// Action is one of [Actions].
type Action string

// Actions on a member.
const (
	Kill   Action = "kill"   // ends its process at once
	Pause  Action = "pause"  // suspends its process (SIGSTOP)
	Resume Action = "resume" // ends Pause
	Start  Action = "start"  // starts its process
	Cut    Action = "cut"    // drops all messages between it and the other members
	Slow   Action = "slow"   // makes its links to other members slow
	Heal   Action = "heal"   // ends Cut and Slow
)

// Actions are all of them.
var Actions = []Action{Kill, Pause, Resume, Start, Cut, Slow, Heal}

// State is the answer to GET /up.
type State struct {
	Members   []Member  `json:"members"`
	Load      LoadState `json:"load"`
	Protocols []string  `json:"protocols"` // those to which the cluster can change
	// Protocol is the present one, as a member reported it last.
	Protocol  string `json:"protocol"`
	Switching string `json:"switching"`  // the protocol to which it changes now; "": none
	LastError string `json:"last_error"` // of what continued after its request; "": none since the last request
}

// Member is a member of the cluster.
type Member struct {
	Name      string `json:"name"`
	PID       int    `json:"pid"`   // 0: no process
	State     string `json:"state"` // running, paused, dead or starting
	Net       string `json:"net"`   // the effect of Cut or Slow on its links, in words; "": none
	ClientURL string `json:"client_url"`
	// Serves: its process may answer.
	Serves bool `json:"-"`
}

// LoadSpec is a load on the cluster: clients that make one request after the other.
type LoadSpec struct {
	Clients    int     `json:"clients"`
	ValueBytes int     `json:"value_bytes"`
	Reads      float64 `json:"reads"` // the share of reads, 0 to 1
}

// LoadState is the load that runs, or that ran last.
type LoadState struct {
	Running bool `json:"running"`
	LoadSpec
	WritesPerS float64 `json:"writes_per_s"`
	ReadsPerS  float64 `json:"reads_per_s"`
	Failed     int64   `json:"failed"` // requests, since its start
}

// Error is a request that cannot be fulfilled. Nothing was done.
type Error struct {
	Status int // of HTTP
	Text   string
}

func (e *Error) Error() string { return e.Text }

func refuse(status int, format string, args ...any) *Error {
	return &Error{status, fmt.Sprintf(format, args...)}
}

// maxBody bounds the body of a request below /up, in bytes.
const maxBody = 64 << 10

// handler is the server of one cluster.
type handler struct {
	cluster Cluster
	proxy   *proxy
}

// Page serves the dashboard's files, which do not depend on a member: / and those below Path.
type Page struct {
	Path string // with a slash at both ends
	http.Handler
}

// New serves the controls of a cluster below /up, the page, and all other paths as a member does. Requests must come
// from this machine's own pages and programs.
func New(c Cluster, page Page) http.Handler {
	h := &handler{cluster: c, proxy: newProxy(c)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /up", h.state)
	mux.HandleFunc("POST /up/members/{name}/{action}", h.control(h.operate))
	mux.HandleFunc("POST /up/switch", h.control(h.switchTo))
	mux.HandleFunc("POST /up/load", h.control(h.load))
	mux.HandleFunc("DELETE /up/load", h.control(func(*http.Request) error { return c.StopLoad() }))
	mux.HandleFunc("/up/", func(w http.ResponseWriter, r *http.Request) {
		answerError(w, refuse(http.StatusNotFound, "there is no %s %s", r.Method, r.URL.Path))
	})
	mux.Handle("GET /{$}", page)
	mux.Handle("GET "+page.Path, page)
	mux.Handle("/", h.proxy)
	return guard(mux)
}

func (h *handler) state(w http.ResponseWriter, r *http.Request) {
	protocol, err := h.proxy.authorize(r)
	if err != nil {
		answerError(w, err)
		return
	}
	if protocol != "" {
		h.cluster.Learn(protocol)
	}
	answer(w, http.StatusOK, h.cluster.State())
}

// control serves a request that changes something, and answers with the state after it.
func (h *handler) control(do func(*http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		_, err := h.proxy.authorize(r)
		if err == nil {
			err = do(r)
		}
		if err != nil {
			answerError(w, err)
			return
		}
		answer(w, http.StatusOK, h.cluster.State())
	}
}

func (h *handler) operate(r *http.Request) error {
	name, action := r.PathValue("name"), Action(r.PathValue("action"))
	if !slices.Contains(Actions, action) {
		return refuse(http.StatusNotFound, "there is no action %q: there are %v", action, Actions)
	}
	err := h.cluster.Operate(r.Context(), name, action)
	if err == nil {
		h.proxy.cancelStopped(h.cluster.State().Members)
	}
	return err
}

func (h *handler) switchTo(r *http.Request) error {
	var to struct {
		Protocol string `json:"protocol"`
	}
	if err := read(r, &to); err != nil {
		return err
	}
	if !slices.Contains(h.cluster.State().Protocols, to.Protocol) {
		return refuse(http.StatusBadRequest, "there is no protocol %q", to.Protocol)
	}
	return h.cluster.Switch(to.Protocol, tokenOf(r))
}

func (h *handler) load(r *http.Request) error {
	l := LoadSpec{Clients: 100, ValueBytes: 16, Reads: 0.5}
	if err := read(r, &l); err != nil {
		return err
	}
	return h.cluster.StartLoad(l, tokenOf(r))
}

// read reads the JSON of a request, which may have no unknown fields. An empty body leaves to as it is.
func read(r *http.Request, to any) error {
	if r.ContentLength == 0 {
		return nil
	}
	body := json.NewDecoder(r.Body)
	body.DisallowUnknownFields()
	if err := body.Decode(to); err != nil {
		return refuse(http.StatusBadRequest, "the body is not the expected JSON: %v", err)
	}
	return nil
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}

func answerError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var e *Error
	if errors.As(err, &e) {
		status = e.Status
	}
	answer(w, status, map[string]string{"error": err.Error()})
}
