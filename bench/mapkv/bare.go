package mapkv

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"

	"github.com/braidlog/braid"
)

// Bare is the cost of HTTP itself: it answers the requests of [Handler] at once, without a log, and stores nothing.
// So a value that was put is not found. Its members do not communicate. The first of the list reports itself as the
// leader, for clients that look for one.
func Bare(self braid.MemberID, members []braid.Member) http.Handler {
	status := Status{Member: self.String(), Leader: members[0].ID.String(), Members: len(members), Ready: true}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /kv/{key...}", bareGet)
	mux.HandleFunc("PUT /kv/{key...}", bareSet)
	mux.HandleFunc("POST /kv/{key...}", bareSet)
	mux.HandleFunc("DELETE /kv/{key...}", bareSet)
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(status)
	})
	return mux
}

// ServeBare serves Bare on a listener until ctx ends.
func ServeBare(ctx context.Context, clients net.Listener, self braid.MemberID, members []braid.Member) error {
	server := http.Server{Handler: Bare(self, members), ReadHeaderTimeout: DefaultTimeout}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // nothing in progress is worth waiting for
	defer stop()
	if err := server.Serve(clients); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func bareGet(w http.ResponseWriter, r *http.Request) {
	if _, ok := key(w, r); ok {
		http.Error(w, "no such key", http.StatusNotFound)
	}
}

func bareSet(w http.ResponseWriter, r *http.Request) {
	if _, ok := key(w, r); !ok {
		return
	}
	if _, ok := body(w, r); ok {
		w.WriteHeader(http.StatusNoContent)
	}
}
