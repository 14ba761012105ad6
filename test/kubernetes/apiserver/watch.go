package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// watcher watches the objects of the load, from before the first of them.
type watcher struct {
	*client

	mu     sync.Mutex
	events []event
	gaps   []gap
	opened int   // watches; each continues after the one before
	seen   int64 // the newest resource version
}

// run watches until ctx ends.
func (w *watcher) run(ctx context.Context) {
	const pause = 200 * time.Millisecond
	for ctx.Err() == nil {
		err := w.watch(ctx)
		if codeOf(err) == http.StatusGone {
			err = w.relist(ctx)
		}
		if err != nil {
			sleep(ctx, pause)
		}
	}
}

// begin sets the resource version from which the watch starts.
func (w *watcher) begin(ctx context.Context) error {
	all, err := w.list(ctx)
	if err == nil {
		w.seen = all.Metadata.version()
	}
	return err
}

// relist replaces events that are not available any more by a list.
func (w *watcher) relist(ctx context.Context) error {
	all, err := w.list(ctx)
	if err != nil {
		return err
	}
	g := gap{from: w.position(), to: all.Metadata.version(), present: map[string]bool{}}
	for _, o := range all.Items {
		g.present[o.Metadata.Name] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gaps, w.seen = append(w.gaps, g), max(w.seen, g.to)
	return nil
}

// position is the newest resource version of an event, a list or a bookmark.
func (w *watcher) position() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// watch receives events until the watch ends. The error is a [*statusError] if kube-apiserver refused or ended it with
// one.
func (w *watcher) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from := fmt.Sprintf("%s?watch=1&allowWatchBookmarks=true&resourceVersion=%d", configMaps, w.position())
	response, err := w.open(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	w.mu.Lock()
	w.opened++
	w.mu.Unlock()
	for events := json.NewDecoder(response.Body); ; {
		var received struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := events.Decode(&received); err != nil {
			return err
		}
		if received.Type == "ERROR" {
			status := &statusError{}
			if err := json.Unmarshal(received.Object, status); err != nil {
				return err
			}
			return status
		}
		var o object
		if err := json.Unmarshal(received.Object, &o); err != nil {
			return err
		}
		w.receive(received.Type, &o)
	}
}

// receive records an event.
func (w *watcher) receive(kind string, o *object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = max(w.seen, o.Metadata.version())
	if kind != "BOOKMARK" && o.Metadata.Name != rootCertificate {
		w.events = append(w.events, event{kind: kind, name: o.Metadata.Name, value: o.Data[valueKey],
			version: o.Metadata.version()})
	}
}

// await returns when the watch has an event of a version, or a later one.
func (w *watcher) await(ctx context.Context, version int64) error {
	const pause = 100 * time.Millisecond
	for w.position() < version {
		if !sleep(ctx, pause) {
			return fmt.Errorf("the watch is at version %d, not at %d: %w", w.position(), version, ctx.Err())
		}
	}
	return nil
}
