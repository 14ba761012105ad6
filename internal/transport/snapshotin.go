package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"time"
)

// errHandled ends a snapshot's body when its handler has returned.
var errHandled = errors.New("transport: the snapshot's handler has returned")

// readSnapshot receives one snapshot and sends the handler's result to the sender.
func (t *Transport) readSnapshot(in *inbound) error {
	r := t.newReader(in.ctx, in.conn, snapFrame, in.counted)
	h, meta, err := r.frame()
	if err == nil && h.kind != kindSnapMeta {
		err = &FrameError{fmt.Sprintf("kind %d at the beginning of a snapshot", h.kind)}
	}
	if err != nil {
		t.complain(in, err)
		return err
	}
	alive, stop := context.WithCancel(in.ctx)
	var pings sync.WaitGroup
	pings.Go(func() {
		every(alive, t.timing.ping, func() {
			if err := in.writeFrame(t, kindPing, nil); err != nil {
				in.end(err)
			}
		})
	})
	body := &snapBody{r: r}
	err = t.opt.Handler.HandleSnapshot(alive, in.key.from, meta, body)
	stop()
	pings.Wait()
	broken := body.err
	body.err = errHandled
	kind, text := kindSnapDone, ""
	if err != nil {
		text = err.Error()
		kind, text = kindFailure, text[:min(len(text), maxErrorText)]
		t.log.Warn("snapshot not taken", "member", hexID(in.key.from), "err", err, "received", body.total)
	}
	if broken != nil && broken != io.EOF {
		return broken
	}
	if err := in.writeFrame(t, kind, []byte(text)); err != nil {
		return err
	}
	in.drain(t)
	return nil
}

// writeFrame writes a frame on a connection where no one else writes at the same time.
func (in *inbound) writeFrame(t *Transport, kind frameKind, body []byte) error {
	if p := t.peer(in.key.from); p != nil && p.cut() {
		return nil
	}
	if err := in.conn.SetWriteDeadline(time.Now().Add(t.timing.write)); err != nil {
		return err
	}
	h := header{kind: kind, length: uint32(len(body)), format: t.frameFormat()}
	b := append(appendHeader(nil, h), body...)
	n, err := in.conn.Write(b)
	in.counted.wrote(n)
	return err
}

// drain reads until the sender closes, which has the answer now. If this side closed with
// something unread, the answer could be lost. The deadline is a new one, because the body's has
// passed if the handler took long after it read the last of it.
func (in *inbound) drain(t *Transport) {
	if in.conn.SetReadDeadline(time.Now().Add(t.timing.linger)) != nil {
		return
	}
	b := make([]byte, 16<<10)
	for {
		if _, err := in.conn.Read(b); err != nil {
			return
		}
	}
}

// snapBody reads the chunks of a snapshot.
type snapBody struct {
	r     *reader
	chunk []byte // memory of the last chunk
	left  []byte // what of it was not read yet
	total uint64
	sum   uint32
	err   error // how it ended
}

func (b *snapBody) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(b.left) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.err = b.next()
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// next reads the next chunk, or the end.
func (b *snapBody) next() error {
	h, err := b.r.header()
	if err != nil {
		return cutOff(err)
	}
	switch {
	case h.kind == kindPing && h.length == 0:
		return nil
	case h.kind == kindSnapChunk && h.length > 4:
		return b.reserve(int(h.length))
	case h.kind == kindSnapEnd && h.length == 12:
		return b.finish()
	}
	return &FrameError{fmt.Sprintf("kind %d of %d bytes inside of a snapshot", h.kind, h.length)}
}

func (b *snapBody) reserve(n int) error {
	if cap(b.chunk) < n {
		b.chunk = make([]byte, max(n, 4+snapshotChunk))
	}
	c := b.chunk[:n]
	if err := b.r.body(c); err != nil {
		return cutOff(err)
	}
	b.r.counted.framesIn.Add(1)
	data := c[4:]
	if crc32.Checksum(data, castagnoli) != binary.LittleEndian.Uint32(c) {
		return &FrameError{fmt.Sprintf("checksum of a snapshot's chunk after %d bytes is wrong", b.total)}
	}
	b.sum = crc32.Update(b.sum, castagnoli, data)
	b.total += uint64(len(data))
	b.left = data
	return nil
}

func (b *snapBody) finish() error {
	var end [12]byte
	if err := b.r.body(end[:]); err != nil {
		return cutOff(err)
	}
	total, sum := binary.LittleEndian.Uint64(end[:]), binary.LittleEndian.Uint32(end[8:])
	if total != b.total || sum != b.sum {
		return &FrameError{fmt.Sprintf("snapshot of %d bytes, sum %x; received %d, sum %x", total, sum, b.total, b.sum)}
	}
	return io.EOF
}

// cutOff makes an end in the middle of a snapshot an error.
func cutOff(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
