package transport

import "time"

// timing is how long things may take. Both sides of a link use the same values, so they
// are not options; tests shorten them.
type timing struct {
	dial      time.Duration // connecting, without the handshake
	handshake time.Duration // the whole handshake, TLS included
	ping      time.Duration // how often an idle connection sends a ping
	idle      time.Duration // a connection without a byte for so long is dead; > 2·ping
	write     time.Duration // a write without progress for so long has failed
	slowest   int           // bytes/s that a TLS write must reach at least
	backoff   time.Duration // first pause after a failed dial that follows a failed dial
	maxPause  time.Duration // and the longest
	settled   time.Duration // a connection that lived so long resets the pause
	stall     time.Duration // a snapshot has failed whose receiver reads nothing for this long
	request   time.Duration // bound of a request whose context has none
	ack       time.Duration // a snapshot's receiver may take so long after the last byte
	linger    time.Duration // how long the side that ends a connection waits for the other to
	logEvery  time.Duration // the same complaint is not logged more often
}

var defaultTiming = timing{
	dial:      2 * time.Second,
	handshake: 5 * time.Second,
	ping:      3 * time.Second,
	idle:      12 * time.Second,
	write:     10 * time.Second,
	slowest:   64 << 10,
	backoff:   20 * time.Millisecond,
	maxPause:  time.Second,
	settled:   time.Second,
	stall:     30 * time.Second,
	request:   30 * time.Second,
	ack:       10 * time.Minute,
	linger:    time.Second,
	logEvery:  10 * time.Second,
}
