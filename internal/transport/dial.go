package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"
)

// plainScheme begins the addresses that are dialed without TLS; see Options.TLSByAddress.
const plainScheme = "http://"

// Dial connects to an address of a member, host:port. It must return when ctx ends. It is called concurrently, without
// locks held.
type Dial func(ctx context.Context, address string) (net.Conn, error)

// within returns a function that gives up after some time, and uses a dialer for TCP where d is nil.
func (d Dial) within(limit time.Duration, tcp net.Dialer) Dial {
	if d == nil {
		d = func(ctx context.Context, address string) (net.Conn, error) {
			return tcp.DialContext(ctx, "tcp", address)
		}
	}
	return func(ctx context.Context, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return d(ctx, address)
	}
}

// dial makes a connection to the peer, up to the end of the handshake.
func (p *peer) dial(ctx context.Context, addr string, what purpose, stream uint32) (net.Conn, error) {
	fail := func(err error) error {
		var h *HandshakeError
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} else if errors.As(err, &h) {
			return h
		}
		return &LinkError{Peer: p.id, Op: "dial " + addr, Err: err}
	}
	if p.cut() {
		return nil, fail(ErrCut)
	}
	t := p.t
	host, plain := strings.CutPrefix(addr, plainScheme)
	raw, err := t.connect(ctx, host)
	if err != nil {
		return nil, fail(err)
	}
	below := t.shaper.wrap(raw, stream, p.id, p.extraDelay)
	unhook := context.AfterFunc(ctx, func() { below.Close() })
	conn, err := t.agree(below, host, plain, &hello{
		purpose: what, cluster: t.opt.Cluster, from: t.opt.Self, to: p.id,
		stream: stream, who: t.opt.Who, expects: t.expects(p.id),
	})
	if !unhook() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		hangUp(conn)
		return nil, fail(err)
	}
	p.counted.connects.Add(1)
	return conn, nil
}

// agree does the dialer's side of TLS and of the handshake, under one deadline.
func (t *Transport) agree(conn net.Conn, addr string, plain bool, h *hello) (net.Conn, error) {
	if err := deadline(conn, t.timing.handshake); err != nil {
		return conn, err
	}
	out := t.tlsOut
	if plain {
		out = nil
	}
	conn, err := clientSide(conn, out, addr)
	if err != nil {
		return conn, err
	}
	if err := t.greet(conn, h); err != nil {
		return conn, err
	}
	return conn, deadline(conn, 0)
}

// clientSide puts TLS above a connection to an address; without a configuration there is none.
func clientSide(conn net.Conn, c *tls.Config, addr string) (net.Conn, error) {
	if c == nil {
		return conn, nil
	}
	if c.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return conn, err
		}
		c = c.Clone()
		c.ServerName = host
	}
	return tls.Client(conn, c), nil
}

// hangUp closes a connection. Under TLS that sends an alert first, which may not take long when the peer does not
// read.
func hangUp(conn net.Conn) {
	if c, ok := conn.(*tls.Conn); ok {
		defer time.AfterFunc(goodbye, func() { c.NetConn().Close() }).Stop()
	}
	conn.Close()
}

// goodbye is how long ending a connection may take.
const goodbye = 200 * time.Millisecond

// mutual derives both sides' settings: each verifies the other, unless the settings say that any certificate is good
// enough.
func mutual(c *tls.Config) (in, out *tls.Config, err error) {
	if c == nil {
		return nil, nil, nil
	}
	if c.InsecureSkipVerify && c.VerifyConnection == nil && c.VerifyPeerCertificate == nil {
		return nil, nil, errors.New("transport: TLS with InsecureSkipVerify authenticates nobody")
	}
	if len(c.Certificates) == 0 && (c.GetCertificate == nil || c.GetClientCertificate == nil) {
		return nil, nil, errors.New("transport: TLS needs a certificate for both sides")
	}
	in, out = c.Clone(), c.Clone()
	in.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	out.MinVersion = in.MinVersion
	if c.InsecureSkipVerify && c.ClientAuth == tls.RequireAnyClientCert {
		return in, out, nil
	}
	if c.RootCAs == nil && c.ClientCAs == nil {
		return nil, nil, errors.New("transport: TLS needs RootCAs or ClientCAs, not the system's")
	}
	in.ClientAuth = tls.RequireAndVerifyClientCert
	if in.ClientCAs == nil {
		in.ClientCAs = c.RootCAs
	}
	if out.RootCAs == nil {
		out.RootCAs = c.ClientCAs
	}
	return in, out, nil
}

// deadline sets one deadline for both directions, or none for 0.
func deadline(conn net.Conn, d time.Duration) error {
	if d == 0 {
		return conn.SetDeadline(time.Time{})
	}
	return conn.SetDeadline(time.Now().Add(d))
}

// keepAlive finds dead hosts on connections that no one reads with a deadline.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 4}
