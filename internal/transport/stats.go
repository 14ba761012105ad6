package transport

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Stats are the counters of a transport since it began.
type Stats struct {
	Peers []PeerStats // by ID
	// EgressBytes and IngressBytes are all bytes of established connections, headers
	// included, handshakes and TLS not.
	EgressBytes, IngressBytes int64
	// Refused counts incoming connections that were refused or sent no valid handshake.
	Refused int64
}

// PeerStats counts what was exchanged with one peer since it was first listed.
type PeerStats struct {
	ID        uint64
	Connected bool      // all streams that were used are connected
	Tunes     bool      // its version knows profiles; of no meaning before there was a link
	Seals     bool      // its version knows seals; the same
	Format    int       // the newest format that it knows; the same
	Since     time.Time // when Connected changed, or the peer was listed
	// Heard is when the last bytes from the peer had been read; zero: there were none.
	Heard time.Time
	// Bytes and frames of frames, requests and snapshots together.
	BytesIn, BytesOut, FramesIn, FramesOut int64
	QueueBytes                             int64 // waiting or being written, all streams
	Drops                                  int64 // dropped frames: queue full, too large, or the connection broke
	Connects                               int64 // outgoing connections made
	Breaks                                 int64 // how often Connected ended
	Failures                               int64 // attempts to connect that failed
	LastError                              string
	Addrs                                  []string // where it is dialed
}

// counters are a peer's; total is shared by all.
type counters struct {
	bytesIn, bytesOut, framesIn, framesOut, drops, connects atomic.Int64
	// waits is when a read of a connection from the peer last began, in nanoseconds since 1970; 0: none did. All bytes
	// that were received before had been read by then.
	waits atomic.Int64

	total *totals
	// coming bounds the bytes of large frames that are being received from the member, over all its
	// connections; nil: they are not bounded.
	coming *semaphore.Weighted
}

// newCounters returns the counters of a member.
func (t *Transport) newCounters() *counters {
	return &counters{total: &t.totals, coming: semaphore.NewWeighted(int64(max(t.opt.MaxFrameBytes, snapFrame)))}
}

type totals struct {
	in, out, refused atomic.Int64
}

func (c *counters) wrote(n int) {
	c.bytesOut.Add(int64(n))
	c.total.out.Add(int64(n))
}

func (c *counters) read(n int) {
	c.bytesIn.Add(int64(n))
	c.total.in.Add(int64(n))
}

// Stats returns what was counted. It is safe for concurrent use and cheap.
func (t *Transport) Stats() Stats {
	s := Stats{
		EgressBytes: t.totals.out.Load(), IngressBytes: t.totals.in.Load(), Refused: t.totals.refused.Load(),
	}
	for _, p := range *t.peers.Load() {
		s.Peers = append(s.Peers, p.stats())
	}
	slices.SortFunc(s.Peers, func(a, b PeerStats) int { return cmp.Compare(a.ID, b.ID) })
	return s
}

func (p *peer) stats() PeerStats {
	c := p.counted
	s := PeerStats{
		ID: p.id, BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		FramesIn: c.framesIn.Load(), FramesOut: c.framesOut.Load(),
		Drops: c.drops.Load(), Connects: c.connects.Load(),
	}
	for _, l := range *p.senders.Load() {
		s.QueueBytes += int64(l.q.bytes())
	}
	s.Addrs = *p.addrs.Load()
	if at := c.waits.Load(); at > 0 {
		s.Heard = time.Unix(0, at)
	}
	p.state.describe(&s)
	return s
}
