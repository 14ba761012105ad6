package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// load are clients that create, update and delete ConfigMaps, and record their writes.
type load struct {
	*client
	workers  int
	every    time.Duration // between two writes of all workers together
	failures failures

	mu        sync.Mutex
	histories []*history // their writes are read when the load has ended
	acked     int
	created   int
	last      time.Time // the last acknowledgement
	pause     time.Duration
}

// run loads until ending ends. The requests that are in progress then are finished.
func (l *load) run(ctx, ending context.Context) {
	l.last = time.Now()
	ticks := time.NewTicker(l.every)
	defer ticks.Stop()
	var all sync.WaitGroup
	for i := range l.workers {
		all.Go(func() {
			for n := 0; ending.Err() == nil; n++ {
				l.writeObject(ctx, ending, ticks.C, fmt.Sprintf("object-%02d-%06d", i, n), n%2 == 0)
			}
		})
	}
	<-ending.Done()
	l.mu.Lock()
	l.pause = max(l.pause, time.Since(l.last))
	l.mu.Unlock()
	all.Wait()
}

// writeObject creates an object, updates it twice, and deletes it if that is asked for. It ends after a write whose
// outcome is not known.
func (l *load) writeObject(ctx, ending context.Context, ticks <-chan time.Time, name string, remove bool) {
	steps := []string{added, modified, modified}
	if remove {
		steps = append(steps, deleted)
	}
	h, value := &history{name: name}, ""
	for i, kind := range steps {
		if kind != deleted {
			value = fmt.Sprintf("%s-%d-%d", name, i, time.Now().UnixNano())
		}
		for wrote := false; !wrote; {
			select {
			case <-ticks:
			case <-ending.Done():
				return
			}
			w, err := l.write(ctx, kind, name, value)
			if err != nil && refused(err) {
				continue
			}
			l.record(h, w)
			if wrote = err == nil; !wrote {
				return
			}
		}
	}
}

// write makes a write.
func (l *load) write(ctx context.Context, kind, name, value string) (write, error) {
	var answer object
	var err error
	switch kind {
	case added:
		err = l.do(ctx, http.MethodPost, configMaps, configMap(name, value), &answer)
	case modified:
		err = l.do(ctx, http.MethodPut, configMaps+"/"+name, configMap(name, value), &answer)
	case deleted:
		err = l.do(ctx, http.MethodDelete, configMaps+"/"+name, nil, nil)
	}
	if err != nil {
		l.failures.add(err)
	}
	return write{kind: kind, value: value, version: answer.Metadata.version(), sure: err == nil}, err
}

// record adds a write to the history of an object.
func (l *load) record(h *history, w write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(h.writes) == 0 {
		l.histories = append(l.histories, h)
	}
	h.writes = append(h.writes, w)
	if !w.sure {
		return
	}
	l.acked++
	if w.kind == added {
		l.created++
	}
	now := time.Now()
	l.pause, l.last = max(l.pause, now.Sub(l.last)), now
}

// finish writes a last object when the load has ended, and returns its resource version.
func (l *load) finish(ctx context.Context) (int64, error) {
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("last-%d", n)
		w, err := l.write(ctx, added, name, name)
		if err != nil && refused(err) {
			continue
		}
		l.record(&history{name: name}, w)
		if err == nil {
			return w.version, nil
		}
	}
	return 0, errors.New("no last object could be written")
}

// present returns the objects that kube-apiserver has.
func (l *load) present(ctx context.Context) (map[string]string, error) {
	all, err := l.list(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, o := range all.Items {
		if o.Metadata.Name != rootCertificate {
			found[o.Metadata.Name] = o.Data[valueKey]
		}
	}
	return found, nil
}

// rootCertificate is the ConfigMap that the controller manager writes to each namespace.
const rootCertificate = "kube-root-ca.crt"

// list lists the objects.
func (c *client) list(ctx context.Context) (*list, error) {
	all := &list{}
	return all, c.do(ctx, http.MethodGet, configMaps, nil, all)
}
