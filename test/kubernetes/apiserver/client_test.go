package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
)

// serveAPI serves in the place of kube-apiserver until the test ends, and returns a client.
func serveAPI(t *testing.T, answer http.HandlerFunc) *client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return &client{url: server.URL, token: "secret", http: server.Client()}
}

func TestRequestsAreSentUntilTheySucceed(t *testing.T) {
	codes := []int{http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusConflict}
	c := serveAPI(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Error("no token")
		}
		w.WriteHeader(codes[0])
		fmt.Fprint(w, `{"message": "why"}`)
		codes = codes[1:]
	})
	var f failures
	if err := c.until(t.Context(), &f, http.MethodPost, "/", nil, http.StatusConflict); err != nil {
		t.Error(err)
	}
	if len(f.counts) != 2 || f.counts["500"] != 1 || f.counts["429"] != 1 || f.sample["500"] != "HTTP 500: why" {
		t.Errorf("%+v", f.counts)
	}
}

func TestOnlyCertainFailuresAreRefusals(t *testing.T) {
	limited := &statusError{Code: http.StatusTooManyRequests}
	failed := &statusError{Code: http.StatusInternalServerError}
	for _, err := range []error{limited, fmt.Errorf("x: %w", syscall.ECONNREFUSED)} {
		if !refused(err) {
			t.Errorf("%v had no effect", err)
		}
	}
	for _, err := range []error{failed, errors.New("reset"), context.Canceled} {
		if refused(err) {
			t.Errorf("%v may have had an effect", err)
		}
	}
}

// A watch continues behind its last event, and after a list if events are compacted.
func TestWatchContinues(t *testing.T) {
	watches := []string{
		`{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"6"},"data":{"value":"1"}}}`,
		`{"type":"ERROR","object":{"code":410}}`,
		`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"21"}}}
		 {"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"22"},"data":{"value":"2"}}}`,
	}
	var from []string
	ctx, cancel := context.WithCancel(t.Context())
	c := serveAPI(t, func(w http.ResponseWriter, r *http.Request) {
		switch at := r.URL.Query().Get("resourceVersion"); {
		case at == "" && len(watches) == 3:
			fmt.Fprint(w, `{"metadata":{"resourceVersion":"5"}}`)
		case at == "":
			fmt.Fprint(w, `{"metadata":{"resourceVersion":"20"},"items":[{"metadata":{"name":"b"}}]}`)
		case len(watches) > 0:
			from = append(from, at)
			fmt.Fprint(w, watches[0])
			watches = watches[1:]
		default:
			cancel()
		}
	})
	w := &watcher{client: c}
	if err := w.begin(ctx); err != nil {
		t.Fatal(err)
	}
	w.run(ctx)
	if want := []string{"5", "6", "20"}; !slices.Equal(from, want) {
		t.Errorf("watches from %q, not %q", from, want)
	}
	if want := []event{{added, "a", "1", 6}, {deleted, "a", "2", 22}}; !slices.Equal(w.events, want) {
		t.Errorf("events %v, not %v", w.events, want)
	}
	if len(w.gaps) != 1 || w.gaps[0].from != 6 || w.gaps[0].to != 20 || !w.gaps[0].present["b"] {
		t.Errorf("gaps %+v", w.gaps)
	}
	if err := w.await(ctx, 22); err != nil {
		t.Error(err)
	}
	if err := w.await(ctx, 23); err == nil {
		t.Error("there is no version 23")
	}
}
