package server

import pb "go.etcd.io/etcd/api/v3/etcdserverpb"

// Progress of a stream: the revision up to which its client has everything. The store reports it on the channel of
// events, after the events that it covers.

// sendProgress sends the revision up to which everything was sent. If a watch was parked since the store reported it,
// that watch has not caught up, and the revision is sent later.
func (w *watchStream) sendProgress(revision int64) error {
	w.mu.Lock()
	behind := len(w.fed) < len(w.watches)
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
	}
	return w.askedProgress
}
