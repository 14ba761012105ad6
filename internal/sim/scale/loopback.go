package scale

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"time"
)

// network measures the kernel's costs of sending and receiving over loopback, and the additional delay of a message.
func (c *Costs) network(ctx context.Context) error {
	a, b, err := loopback(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	defer b.Close()
	var failed error
	note := func(_ int, err error) { failed = errors.Join(failed, err) }
	buffer := make([]byte, large)
	few, most := call(a, b, buffer[:256], note), call(a, b, buffer[:large/2], note)
	c.Write.Once, c.Write.Byte = through(256, few[0], large/2, most[0])
	c.Read.Once, c.Read.Byte = through(256, few[1], large/2, most[1])
	trip := trip(a, b, buffer[:256], note)
	c.Hop = max(0, trip/2-few[0]-few[1])
	return failed
}

// call measures one call to write and one to read.
func call(a, b net.Conn, part []byte, note func(int, error)) (took [2]float64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	writes, reads := make([]float64, times), make([]float64, times)
	for i := range times {
		began := worked()
		note(a.Write(part))
		wrote := worked()
		note(io.ReadFull(b, part))
		writes[i], reads[i] = float64(wrote-began), float64(worked()-wrote)
	}
	return [2]float64{steps(writes)[10], steps(reads)[10]}
}

// trip measures a round trip between two goroutines. Each sleeps until a message arrives.
func trip(a, b net.Conn, part []byte, note func(int, error)) float64 {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for echo := make([]byte, len(part)); ; {
			if _, err := io.ReadFull(b, echo); err != nil {
				return
			}
			if _, err := b.Write(echo); err != nil {
				return
			}
		}
	}()
	wall := func() time.Duration { return time.Since(started) }
	took := quartile(wall, times, nil, func() { note(a.Write(part)); note(io.ReadFull(a, part)) })
	_ = a.Close()
	<-done
	return took
}

// loopback creates a TCP connection and returns its two ends.
func loopback(ctx context.Context) (a, b net.Conn, err error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	var dialer net.Dialer
	if a, err = dialer.DialContext(ctx, "tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	if b, err = l.Accept(); err != nil {
		return nil, nil, errors.Join(err, a.Close())
	}
	deadline := time.Now().Add(10 * time.Second)
	return a, b, errors.Join(a.SetDeadline(deadline), b.SetDeadline(deadline))
}
