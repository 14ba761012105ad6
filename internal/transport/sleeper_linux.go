package transport

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper sleeps precisely. In an idle process the runtime's timers are a millisecond late,
// because the runtime waits in whole milliseconds. It waits for a timer of the kernel as for a
// connection, which is precise. In a busy process the runtime's own timers come first.
type sleeper struct {
	f      *os.File
	unhook func() bool
}

func newSleeper(ctx context.Context) (*sleeper, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "timer")
	return &sleeper{f, context.AfterFunc(ctx, func() { f.Close() })}, nil
}

func (s *sleeper) close() {
	s.unhook()
	s.f.Close()
}

// sleep waits; an error means that it was closed.
func (s *sleeper) sleep(d time.Duration) error {
	if err := s.f.SetReadDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	raw, err := s.f.SyscallConn()
	if err != nil {
		return err
	}
	var setErr error
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := raw.Control(func(fd uintptr) { setErr = unix.TimerfdSettime(int(fd), 0, &spec, nil) }); err != nil {
		return err
	}
	if setErr != nil {
		return os.NewSyscallError("timerfd_settime", setErr)
	}
	var expired [8]byte
	if _, err = s.f.Read(expired[:]); os.IsTimeout(err) {
		return nil
	}
	return err
}
