package server

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// Progress of a stream: the revision up to which its client has everything. The store reports it on the channel of
// events, after the events that it covers.

// sendProgress sends the revision up to which everything was sent. If a watch was parked since the store reported it,
// or the store began to feed one, that watch may not have caught up, and the revision is sent later.
func (w *watchStream) sendProgress(revision int64) error {
	w.mu.Lock()
	fed := w.popReport()
	behind := len(w.fed) < len(w.watches) || fed != w.lastFed
	if behind {
		w.askedProgress = true
		w.wakeUp()
	}
	w.mu.Unlock()
	if behind {
		return nil
	}
	return w.stream.Send(&pb.WatchResponse{Header: w.s.header(revision), WatchId: noWatch})
}

// popReport returns lastFed of when the store was asked for the oldest report. w.mu is held.
func (w *watchStream) popReport() (fed mvcc.WatchID) {
	if len(w.reports) > 0 {
		fed, w.reports = w.reports[0], w.reports[1:]
	}
	if len(w.events.Chan()) == 0 {
		w.reports = nil
	}
	return fed
}

// requestProgress asks the store to report the revision to the watches that asked for it and had nothing else for a
// whole interval. The report comes after the events on their channel.
func (w *watchStream) requestProgress() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, state := range w.fed {
		if state.progress && state.quiet {
			w.events.RequestProgress(id)
		}
		state.quiet = true
	}
}

// answerProgress answers a progress request once all watches of the stream have caught up, and reports
// whether it must be tried again. The store drops the answer if the channel is full.
func (w *watchStream) answerProgress() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	full := len(w.events.Chan()) == cap(w.events.Chan())
	switch {
	case len(w.watches) == 0:
		w.askedProgress = false
	case len(w.fed) < len(w.watches), full: // a parked watch has not caught up
	case w.askedProgress && w.events.RequestProgressAll():
		w.askedProgress = false
		w.reports = append(w.reports, w.lastFed)
	}
	return w.askedProgress
}
