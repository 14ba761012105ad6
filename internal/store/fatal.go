package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// FatalError explains why a store cannot continue. The member must stop: a retry is not safe, since memory may be
// ahead of the disk. What was made durable is intact, so the member can start again once the cause is gone.
type FatalError struct {
	Dir   string // of the store
	Op    string // what failed, in etcd's words
	Cause error  // may be nil
	Stack string // of the goroutine, if it was a panic in etcd's code
}

func (e *FatalError) Error() string {
	s := fmt.Sprintf("store %s cannot go on: %s", e.Dir, e.Op)
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	if errors.Is(e.Cause, syscall.ENOSPC) {
		s += " (the disk is full: free some space and start the member again)"
	}
	return s
}

func (e *FatalError) Unwrap() error { return e.Cause }

// latch holds the first fatal error of a store.
type latch struct {
	dir     string
	lg      *zap.Logger
	onFatal func(error)
	once    sync.Once
	failed  chan struct{} // closed once err is set
	err     error
}

func newLatch(dir string, lg *zap.Logger, onFatal func(error)) *latch {
	return &latch{dir: dir, lg: lg, onFatal: onFatal, failed: make(chan struct{})}
}

// fail records the first error and returns it.
func (l *latch) fail(err error) error {
	l.once.Do(func() {
		l.err = err
		close(l.failed)
		var fatal *FatalError
		if errors.As(err, &fatal) {
			l.lg.Error("the store cannot go on", zap.Error(err), zap.String("stack", fatal.Stack))
		}
		if l.onFatal != nil {
			l.onFatal(err)
		}
	})
	return l.get()
}

func (l *latch) get() error {
	select {
	case <-l.failed:
		return l.err
	default:
		return nil
	}
}

// caught converts a value that recover returned into the store's fatal error.
func (l *latch) caught(r any) error {
	err, ok := r.(*FatalError)
	if !ok {
		err = &FatalError{Dir: l.dir, Op: fmt.Sprintf("panic: %v", r), Stack: string(debug.Stack())}
	}
	return l.fail(err)
}

// logger returns lg with etcd's exits (Panic and Fatal) replaced by the latch's.
func (l *latch) logger(lg *zap.Logger) *zap.Logger {
	return lg.WithOptions(zap.WithPanicHook(panicHook{l}), zap.WithFatalHook(fatalHook{l}))
}

// panicHook ends an impossible situation in etcd's code: the goroutine's caller recovers
// or the process ends.
type panicHook struct{ l *latch }

func (h panicHook) OnWrite(ce *zapcore.CheckedEntry, fields []zapcore.Field) {
	panic(h.l.describe(ce, fields))
}

// fatalHook ends a failure of the database file, for which etcd exits the process.
type fatalHook struct{ l *latch }

func (h fatalHook) OnWrite(ce *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := h.l.describe(ce, fields)
	if h.l.onFatal == nil || recovered() {
		panic(err)
	}
	// A goroutine of the database. It holds locks that must never be released over a
	// half-done commit, so it stays here until the process ends.
	h.l.fail(err)
	select {}
}

func (l *latch) describe(ce *zapcore.CheckedEntry, fields []zapcore.Field) *FatalError {
	err := &FatalError{Dir: l.dir, Op: ce.Message}
	for _, f := range fields {
		if cause, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			err.Cause = cause
		}
	}
	return err
}

// recovered reports whether the calling goroutine is within one of the store's methods that recover (see latch.guard).
func recovered() bool {
	return strings.Contains(string(debug.Stack()), "store.(*latch).guard")
}

// apart is guard in a goroutine of its own. If the latch fails meanwhile it does not wait for f, which may wait for a
// lock that is held forever.
func (l *latch) apart(f func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- l.guard(f) }()
	select {
	case err := <-ended:
		return err
	case <-l.failed:
		return l.get()
	}
}

// guard runs f. If etcd's code panics, it returns that as the store's fatal error.
func (l *latch) guard(f func() error) (err error) {
	if err := l.get(); err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = l.caught(r)
		}
	}()
	return f()
}
