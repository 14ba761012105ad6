package wal

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

// answers records the answers of a writer. Each submission must be answered once, in order.
type answers struct {
	mu    sync.Mutex
	asked int
	order []int
	errs  []error
}

func (a *answers) submit(w *Writer, r ...Record) {
	w.Submit(r, a.next())
}

func (a *answers) next() func(error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	n := a.asked
	return func(err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.order = append(a.order, n)
		a.errs = append(a.errs, err)
	}
}

// all checks that each submission was answered once and in order. It returns the answers.
func (a *answers) all(t *testing.T) []error {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, n := range a.order {
		require.Equal(t, i+1, n, "in the order of submission, each once")
	}
	require.Len(t, a.errs, a.asked, "everybody is told")
	return a.errs
}

// heldFS blocks the first operation of a kind in a directory after it is armed.
type heldFS struct {
	kind    errorfs.OpKind
	dir     string
	fail    error // the error of the operation once it is released; nil: it succeeds
	armed   atomic.Bool
	reached chan struct{}
	release chan struct{}
}

func (h *heldFS) hook(o errorfs.Op) error {
	if o.Kind != h.kind || !strings.Contains(o.Path, h.dir) || !h.armed.CompareAndSwap(true, false) {
		return nil
	}
	close(h.reached)
	<-h.release
	return h.fail
}

// TestWriterIsClosedInEveryPhase closes a writer during each of its steps. The step then succeeds or
// fails. Others submit before Close, at the same time and after it.
func TestWriterIsClosedInEveryPhase(t *testing.T) {
	phases := map[string]struct {
		kind errorfs.OpKind
		dir  string
	}{
		"bodies are written":  {errorfs.OpFileWriteAt, "/bodies"},
		"bodies are synced":   {errorfs.OpFileSyncData, "/bodies"},
		"records are written": {errorfs.OpFileWriteAt, "/log"},
		"records are synced":  {errorfs.OpFileSyncData, "/log"},
	}
	broken := errors.New("the disk is broken")
	for name, phase := range phases {
		for _, fail := range []error{nil, broken} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mem := vfs.NewMem()
					h := &heldFS{kind: phase.kind, dir: phase.dir, fail: fail, reached: make(chan struct{}),
						release: make(chan struct{})}
					fs := hooked(mem, h.hook)
					closeDuring(t, fs, h)
				})
			})
		}
	}
}

func closeDuring(t *testing.T, fs vfs.FS, h *heldFS) {
	l, b := openMem(t, fs), openBodiesMem(t, fs)
	w, a := NewWriter(l, b), &answers{}
	h.armed.Store(true)
	for i := uint64(1); i <= 3; i++ {
		a.submit(w, withBody(entry(1, i, []byte("e")), 1, payload(1, i, 100)))
	}
	<-h.reached
	a.submit(w, withBody(entry(1, 4, []byte("e")), 1, payload(1, 4, 100)))
	w.Compact(1, 2)
	w.Rewrite(1, a.next())
	a.submit(w)
	accepted := a.asked
	closed := make(chan error, 1)
	go func() { closed <- w.Close() }()
	synctest.Wait() // until all others are blocked
	a.submitLate(t, w, accepted)
	close(h.release)
	err := <-closed
	synctest.Wait()
	if h.fail != nil {
		require.ErrorIs(t, err, h.fail)
	} else {
		require.NoError(t, err)
	}
	// Submissions after Close were answered first.
	a.mu.Lock()
	a.order, a.errs = a.order[1:], a.errs[1:]
	a.asked--
	a.mu.Unlock()
	for _, got := range a.all(t) {
		require.Equal(t, h.fail != nil, got != nil, "%v", got)
	}
	if h.fail == nil {
		require.NoError(t, b.Close())
		require.NoError(t, l.Close())
	}
}

// submitLate submits to a writer that is being closed, which refuses it at once.
func (a *answers) submitLate(t *testing.T, w *Writer, accepted int) {
	a.submit(w, entry(1, 5, []byte("late")))
	a.mu.Lock()
	defer a.mu.Unlock()
	last := len(a.order) - 1
	require.Equal(t, accepted+1, a.order[last])
	require.Equal(t, ErrClosed, a.errs[last])
}

// TestWriterIsClosedWhileItWaitsForSpace closes a writer on a full disk: every submission is answered.
func TestWriterIsClosedWhileItWaitsForSpace(t *testing.T) {
	for name, body := range map[string]int{"log": 0, "bodies": 5000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, b := openTight(t, newTight(4*tightSegment))
				w, a := NewWriter(l, b), &answers{}
				i := uint64(0)
				more := func(n int) {
					for range n {
						i++
						r := entry(1, i, payload(1, i, 2000))
						if body > 0 {
							held := someBody(1, i, 1, body)
							r.Body = &held
						}
						a.submit(w, r)
					}
				}
				more(100)
				synctest.Wait() // until the writer waits for space
				require.NotNil(t, w.Metrics().Full)
				more(10)
				require.NoError(t, w.Close())
				errs, failed := a.all(t), 0
				for k, err := range errs {
					if err != nil {
						require.Equal(t, ErrClosed, err)
						failed++
					} else {
						require.Zero(t, failed, "%d is durable, and one before it is not", k+1)
					}
				}
				require.Positive(t, failed)
				require.NoError(t, b.Close())
				require.NoError(t, l.Close(), "it is not damaged")
			})
		})
	}
}

// TestWriterIsClosedIdle closes idle writers: a new one, one that waits before it seals, and one that has sealed.
func TestWriterIsClosedIdle(t *testing.T) {
	for _, idle := range []time.Duration{0, sealAfter / 2, 10 * sealAfter} {
		for _, used := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				fs := vfs.NewMem()
				l, b := openMem(t, fs), openBodiesMem(t, fs)
				w, a := NewWriter(l, b), &answers{}
				if used {
					a.submit(w, withBody(entry(1, 1, []byte("e")), 1, []byte("body")))
				}
				<-time.After(idle)
				synctest.Wait()
				require.NoError(t, w.Close())
				for _, err := range a.all(t) {
					require.NoError(t, err)
				}
				require.Equal(t, idle > sealAfter, l.sealed)
				require.NoError(t, b.Close())
				require.NoError(t, l.Close())
			})
		}
	}
}

// TestWriterContinuesWhenThereIsSpace submits to a writer on a full disk. The writer tries again after each submission,
// and after a pause.
func TestWriterContinuesWhenThereIsSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTight(4 * tightSegment)
		l, b := openTight(t, d)
		w, a := NewWriter(l, b), &answers{}
		for i := range uint64(60) {
			a.submit(w, entry(1, i+1, payload(1, i+1, 2000)))
		}
		synctest.Wait()
		require.NotNil(t, w.Metrics().Full)
		d.grow(100 * tightSegment)
		<-time.After(2 * spaceAfter)
		synctest.Wait()
		require.Nil(t, w.Metrics().Full)
		for _, err := range a.all(t) {
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		require.NoError(t, b.Close())
		require.NoError(t, l.Close())
	})
}
