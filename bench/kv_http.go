package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// errNotOffered indicates an operation that the service does not have.
var errNotOffered = errors.New("the map service has no such operation")

// mapStore uses the HTTP interface of package mapkv.
type mapStore struct {
	target *kvTarget
	stale  bool
	answer bytes.Buffer
}

func (s *mapStore) use(t *kvTarget) { s.target = t }

func (s *mapStore) get(ctx context.Context, key []byte) (kvSeen, error) {
	suffix := ""
	if s.stale {
		suffix = "?stale"
	}
	code, err := s.do(ctx, http.MethodGet, key, suffix, nil)
	if err != nil || code == http.StatusNotFound {
		return kvSeen{key: key}, err
	}
	return kvSeen{key: key, value: s.answer.Bytes(), found: true}, nil
}

func (s *mapStore) put(ctx context.Context, key, value []byte) (int64, error) {
	_, err := s.do(ctx, http.MethodPut, key, "", value)
	return 0, err
}

func (s *mapStore) remove(ctx context.Context, key []byte) (bool, int64, error) {
	_, err := s.do(ctx, http.MethodDelete, key, "", nil)
	return true, 0, err
}

func (s *mapStore) scan(context.Context, []byte, int) ([]kvSeen, error) { return nil, errNotOffered }

func (s *mapStore) grant(context.Context) error { return errNotOffered }

func (s *mapStore) swap(context.Context, kvSeen, []byte) (bool, kvSeen, error) {
	return false, kvSeen{}, errNotOffered
}

// do makes a request. Status codes other than success and 404 are errors.
func (s *mapStore) do(ctx context.Context, method string, key []byte, suffix string,
	value []byte) (code int, err error) {
	var body io.Reader
	if value != nil {
		body = bytes.NewReader(value)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.target.base+"/kv/"+url.PathEscape(string(key))+suffix, body)
	if err != nil {
		return 0, err
	}
	resp, err := s.target.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	s.answer.Reset()
	if _, err := s.answer.ReadFrom(resp.Body); err != nil {
		return 0, err
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNoContent, http.StatusNotFound:
		return resp.StatusCode, nil
	case http.StatusRequestEntityTooLarge:
		return resp.StatusCode, fmt.Errorf("%w: %s", errMapTooLarge, strings.TrimSpace(s.answer.String()))
	}
	return resp.StatusCode, fmt.Errorf("%s %s: %s: %s", method, req.URL, resp.Status,
		strings.TrimSpace(s.answer.String()))
}

// newHTTPTarget returns a target with one connection at a time.
func newHTTPTarget(endpoint string, secure *tls.Config) (*kvTarget, error) {
	addr, err := address(endpoint)
	if err != nil {
		return nil, err
	}
	scheme := "http://"
	if secure = secured(endpoint, secure); secure != nil {
		scheme = "https://"
	}
	transport := &http.Transport{TLSClientConfig: secure, MaxIdleConnsPerHost: 1 << 10, DisableCompression: true}
	return &kvTarget{http: &http.Client{Transport: transport}, base: scheme + addr}, nil
}

// mapStatus has the fields of the map service's GET /status that are used here.
type mapStatus struct {
	Member      string  `json:"member"`
	Leader      string  `json:"leader"`
	Members     int     `json:"members"`
	EgressBytes float64 `json:"egress_bytes"`
	Syncs       float64 `json:"syncs"`
}

// askMap requests the status of a member of the map service.
func askMap(ctx context.Context, endpoint string, secure *tls.Config) (s mapStatus, err error) {
	t, err := newHTTPTarget(endpoint, secure)
	if err != nil {
		return s, err
	}
	defer t.close()
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.base+"/status", nil)
	if err != nil {
		return s, err
	}
	resp, err := t.http.Do(req)
	if err != nil {
		return s, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return s, errors.New(resp.Status)
	}
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// probeMap is probe for the map service.
func probeMap(ctx context.Context, endpoints []string, secure *tls.Config) (*kvCluster, error) {
	c := &kvCluster{endpoints: endpoints, leader: -1, version: "mapkv", readMetrics: mapMetrics}
	for i, e := range endpoints {
		s, err := askMap(ctx, e, secure)
		switch {
		case err != nil:
			return nil, fmt.Errorf("endpoint %s is unreachable or not a map service: %w", e, err)
		case s.Leader == "":
			return nil, fmt.Errorf("endpoint %s knows no leader: its cluster has no quorum", e)
		case s.Leader == s.Member:
			c.leader = i
		}
		c.members = max(c.members, s.Members)
	}
	return c, nil
}

// mapMetrics reads the running totals of all endpoints; one that does not answer counts 0.
func mapMetrics(c *kvCluster, secure *tls.Config) (m serverMetrics) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for i, e := range c.endpoints {
		if s, err := askMap(ctx, e, secure); err == nil {
			m.fsyncs += s.Syncs
			if i == c.leader {
				m.leaderEgress += s.EgressBytes
			}
		}
	}
	return m
}
