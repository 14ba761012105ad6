package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// statusPath is a member's page of JSON with its state, which is for users only while auth is on.
const statusPath = "/braid/status"

// answerTimeout bounds the wait for a member's answer if another member can be asked.
const answerTimeout = 2 * time.Second

var (
	errLate     = errors.New("the member does not answer in time")
	errStopped  = errors.New("the member was stopped")
	errNoMember = &Error{http.StatusServiceUnavailable, "no member answers: all are dead or paused"}
)

// proxy passes requests on to a member that answers.
type proxy struct {
	cluster Cluster
	choice  choice
	reverse httputil.ReverseProxy
	to      *http.Transport

	mu       sync.Mutex
	progress map[*attempt]bool
}

// attempt is a request that a member answers.
type attempt struct {
	url    string
	cancel context.CancelCauseFunc
}

func newProxy(c Cluster) *proxy {
	const idle = time.Minute
	dialer := &net.Dialer{Timeout: probeTimeout}
	p := &proxy{cluster: c, progress: map[*attempt]bool{}, to: &http.Transport{
		DialContext: dialer.DialContext, IdleConnTimeout: idle, DisableCompression: true}}
	p.choice.client = &http.Client{Transport: p.to}
	p.reverse = httputil.ReverseProxy{Transport: p, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Header.Del("Origin") // it is this server's own
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			var e *Error
			if !errors.As(err, &e) {
				err = refuse(http.StatusBadGateway, "the member does not answer: %v", err)
			}
			answerError(w, err)
		}}
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.reverse.ServeHTTP(w, r) }

// serving are the URLs of members that may answer.
func serving(members []Member) (urls []string) {
	for _, m := range members {
		if m.Serves {
			urls = append(urls, m.ClientURL)
		}
	}
	return urls
}

// RoundTrip implements http.RoundTripper: it sends a request to the best member, and if that does not answer and the
// request may be repeated, to the others.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	repeatable := (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		(r.Body == nil || r.Body == http.NoBody)
	err := error(errNoMember)
	urls := p.choice.among(r.Context(), serving(p.cluster.State().Members))
	for i, base := range urls {
		within := time.Duration(math.MaxInt64)
		if repeatable && i < len(urls)-1 {
			within = answerTimeout
		}
		var answer *http.Response
		if answer, err = p.send(r, base, within); err == nil || !repeatable || r.Context().Err() != nil {
			return answer, err
		}
	}
	return nil, err
}

// send sends a request to a member, whose answer must begin within a time.
func (p *proxy) send(r *http.Request, base string, within time.Duration) (*http.Response, error) {
	to, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	late := time.AfterFunc(within, func() { cancel(errLate) })
	defer late.Stop()
	a := &attempt{base, cancel}
	p.mu.Lock()
	p.progress[a] = true
	p.mu.Unlock()
	context.AfterFunc(ctx, func() { // r's context ends with the answer
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.progress, a)
	})
	out := r.Clone(ctx)
	out.URL.Scheme, out.URL.Host, out.Host = to.Scheme, to.Host, to.Host
	answer, err := p.to.RoundTrip(out)
	if err != nil {
		cancel(nil)
	}
	return answer, err
}

// cancelStopped ends the requests to members that do not answer any more.
func (p *proxy) cancelStopped(members []Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a := range p.progress { // any order
		for _, m := range members {
			if m.ClientURL == a.url && !m.Serves {
				a.cancel(errStopped)
			}
		}
	}
}

// status asks a member for its state, as the user of a request.
func (p *proxy) status(r *http.Request) (*http.Response, error) {
	q, err := http.NewRequestWithContext(r.Context(), http.MethodGet, statusPath, nil)
	if err != nil {
		return nil, err
	}
	if user := r.Header.Get("Authorization"); user != "" {
		q.Header.Set("Authorization", user)
	}
	return p.RoundTrip(q)
}

// authorize refuses a request if a member refuses to show its state to the user of the request; if no member answers,
// the request is allowed. It returns the protocol; "": no member reported it.
func (p *proxy) authorize(r *http.Request) (protocol string, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*probeTimeout)
	defer cancel()
	answer, err := p.status(r.WithContext(ctx))
	if err != nil {
		return "", nil //nolint:nilerr // see above
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		var view struct {
			Protocol string `json:"protocol"`
		}
		if json.NewDecoder(answer.Body).Decode(&view) != nil {
			return "", nil
		}
		return view.Protocol, nil
	case http.StatusUnauthorized, http.StatusForbidden:
		why, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		if err != nil {
			return "", fmt.Errorf("a member's refusal: %w", err)
		}
		return "", &Error{answer.StatusCode, strings.TrimSpace(string(why))}
	}
	return "", nil
}
