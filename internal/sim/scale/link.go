package scale

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/protocol"
)

// link carries one instance's messages from one member to another. It has a thread that writes, a
// card on each side, and a thread that reads.
type link struct {
	from, to *node
	instance protocol.InstanceID
	out, in  *thread
	queue    []frame // to write
	writing  []frame
	came     []frame // to read
	reading  []frame
}

// frame is a message on the wire.
type frame struct {
	msg   *protocol.Message
	bytes int
	wire  []byte // only when costs are measured
}

const frameHead = 12 // the overhead of the transport

func newFrame(m *protocol.Message, parts [][]byte) frame {
	f := frame{msg: m, bytes: frameHead}
	for _, p := range parts {
		f.bytes += len(p)
	}
	return f
}

func newLink(from, to *node, instance protocol.InstanceID) *link {
	l := &link{from: from, to: to, instance: instance}
	l.out = from.cpu.thread(fmt.Sprintf("send %d to %v", instance, to.id), l.write, l.written)
	l.in = to.cpu.thread(fmt.Sprintf("receive %d of %v", instance, from.id), l.read, l.handle)
	return l
}

func (l *link) send(f frame) {
	l.queue = append(l.queue, f)
	l.out.wake()
}

func (l *link) write() (cost spend) {
	l.writing, l.queue = l.queue, l.writing[:0]
	if bytes := sum(l.writing); bytes > 0 {
		cost.on(l.from.w.costs.Write, 0, bytes)
	}
	return cost
}

func (l *link) written() {
	bytes := sum(l.writing)
	if bytes == 0 {
		return
	}
	w := l.from.w
	w.tally.messages += int64(len(l.writing)) * w.one()
	w.tally.bytes += int64(bytes) * w.one()
	frames := append([]frame(nil), l.writing...)
	clear(l.writing)
	card := int(l.instance-1) % w.cfg.Cards
	latency := w.cfg.Latency
	if latency == 0 {
		latency = time.Duration(w.costs.Hop)
	}
	left := l.from.egress[card].pass(w.now, bytes)
	arrives := l.to.ingress[card].pass(left+latency, bytes)
	w.after(arrives-w.now, func() {
		l.came = append(l.came, frames...)
		l.in.wake()
	})
}

// readBuffer is the maximal number of bytes of one receiving system call, as in transport.
const readBuffer = 64 << 10

func (l *link) read() (cost spend) {
	l.reading, l.came = l.came, l.reading[:0]
	c, bytes := &l.to.w.costs, 0
	for _, f := range l.reading {
		bytes += f.bytes
		l.decode(&f)
		cost.on(l.to.w.steps.Decode, len(f.msg.Entries), 0)
		cost.on(c.Unpack, 0, f.bytes)
	}
	if bytes > 0 {
		cost.on(c.Read, 0, bytes)
		cost += spend(c.Read.Once * float64((bytes-1)/readBuffer))
	}
	return cost
}

// decode measures the cost of decoding a message, when costs are measured. The instance gets the message as it was
// sent.
func (l *link) decode(f *frame) {
	if w := l.to.w; w.meter != nil {
		w.note(w.meter.decode(f, w.protocol.Core.Codec))
	}
}

func (l *link) handle() {
	if len(l.reading) == 0 {
		return
	}
	to := l.to.loops[l.instance-1]
	for _, f := range l.reading {
		m := *f.msg
		to.message(&m, f.bytes)
	}
	clear(l.reading)
}

func sum(frames []frame) (bytes int) {
	for _, f := range frames {
		bytes += f.bytes
	}
	return bytes
}

// card is one direction of a network card.
type card struct {
	w    *world
	free time.Duration // the end of everything that it has to send, or receive, so far
	sent float64       // bytes, in the measured time
}

// pass returns the time at which a number of bytes have passed, if the first one arrives at a given time.
func (c *card) pass(at time.Duration, bytes int) time.Duration {
	if c.w.cfg.Bandwidth == 0 {
		if c.w.counts() {
			c.sent += float64(bytes)
		}
		return at
	}
	begins := max(c.free, at)
	c.free = begins + time.Duration(float64(bytes)/c.w.cfg.Bandwidth*float64(time.Second))
	if in := min(c.free, c.w.to) - max(begins, c.w.from); in > 0 {
		c.sent += float64(bytes) * float64(in) / float64(c.free-begins)
	}
	return c.free
}
