package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// answering is a member that answers joiners that send "me".
func answering(t *testing.T, config *tls.Config) *member {
	return start(t, 1, calm, "", func(o *Options, _ *testHandler) {
		o.TLS = config
		o.Answer = func(question []byte) []byte {
			if string(question) != "me" {
				return nil
			}
			return bytes.Repeat([]byte("members"), 1000)
		}
	})
}

func ask(t *testing.T, addr string, config *tls.Config, question string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	return Ask(ctx, addr, nil, config, []byte(question))
}

// TestJoinersAreAnswered with and without TLS, whether they are known or not.
func TestJoinersAreAnswered(t *testing.T) {
	noLeaks(t)
	ca := newAuthority(t)
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": ca.member(t)} {
		t.Run(name, func(t *testing.T) {
			m := answering(t, config)
			got, err := ask(t, m.addr, config, "me")
			if err != nil || len(got) != 7000 {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if _, err = ask(t, m.addr, config, "somebody"); !errors.Is(err, ErrNoAnswer) {
				t.Error(err)
			}
			if _, err = ask(t, m.addr, config, strings.Repeat("x", maxQuestion+1)); err == nil {
				t.Error("a question without bound")
			}
			eventually(t, "the log", func() bool {
				log := m.logs.String()
				return strings.Contains(log, "a new member was told") && strings.Contains(log, "is not known here")
			})
			if s := m.Stats(); s.Refused != 1 {
				t.Errorf("%d refused", s.Refused)
			}
		})
	}
	silent := start(t, 2, calm, "", nil)
	if _, err := ask(t, silent.addr, nil, "me"); !errors.Is(err, ErrNoAnswer) {
		t.Error(err)
	}
}

// TestOnlyMembersAreAnswered tries what strangers may send to the port of members: other protocols, which
// are hung up on, and questions of those who do not pass TLS.
func TestOnlyMembersAreAnswered(t *testing.T) {
	noLeaks(t)
	ca := newAuthority(t)
	plain, secure := answering(t, nil), answering(t, ca.member(t))
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testTimeout}
	for _, path := range []string{"/", "/members", "/version", "/metrics", "/health", "/raft", "/v3/kv/range",
		"/braid/status"} {
		if r, err := web.Get("http://" + plain.addr + path); err == nil {
			r.Body.Close()
			t.Errorf("%s: %s", path, r.Status)
		}
	}
	for _, words := range []string{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "brd\n", "brd\n\x01\x00\x01\x00\xff\xff\xff\x7f",
		string(encodeTalk(questionMagic, true, []byte("me")))[:14] + "????"} {
		conn, err := net.Dial("tcp", plain.addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, words); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(conn); len(got) > 0 {
			t.Errorf("%q: %q", words, got)
		}
		conn.Close()
	}
	withoutCertificate := &tls.Config{RootCAs: ca.pool,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }}
	withoutCertificate.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return nil, errors.New("none")
	}
	for name, config := range map[string]*tls.Config{"plain": nil, "no certificate": withoutCertificate,
		"another authority": newAuthority(t).member(t)} {
		if got, err := ask(t, secure.addr, config, "me"); err == nil || errors.Is(err, ErrNoAnswer) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	// The joiner, too, sends nothing to a member that does not pass TLS.
	if _, err := ask(t, plain.addr, ca.member(t), "me"); err == nil {
		t.Error("TLS with a plain port")
	}
}

// TestAServerOfHTTPRefusesAQuestionAtOnce, because a joiner may be configured to ask where clients are served.
func TestAServerOfHTTPRefusesAQuestionAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Hour}
	go server.Serve(l)
	defer server.Close()
	if _, err := ask(t, l.Addr().String(), nil, "me"); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Error(err)
	}
}
