package status

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// maxAnswer limits the size of an answer.
const maxAnswer = 16 << 20

type asker struct{ options *Options }

// errNotBraid indicates a server without /braid/status.
var errNotBraid = errors.New("not a member of braid")

// errNoUser indicates that auth is on, and that name and password are not those of a user.
var errNoUser = errors.New("auth is on, and the answer is for users")

// Hint says what to do about an error whose reason may be that one side of a connection speaks TLS and the other one
// does not; "": it is another error.
func Hint(text string) string {
	contains := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case contains("server preface: EOF"), contains(`"http://`) && strings.HasSuffix(text, ": EOF"):
		return "the server may expect TLS: write https:// before its address, and name its authority with --cacert"
	case contains("first record does not look like a TLS handshake"),
		contains("server gave HTTP response to HTTPS client"):
		return "the server does not speak TLS: write http:// before its address, and leave out certificates"
	}
	return ""
}

// one asks one member. Errors are in the result.
func (a *asker) one(ctx context.Context, endpoint string) Member {
	ctx, cancel := context.WithTimeout(ctx, a.options.Timeout)
	defer cancel()
	m := Member{Endpoint: endpoint}
	err := a.askBraid(ctx, &m)
	if errors.Is(err, errNotBraid) {
		err = a.askEtcd(ctx, &m)
	}
	if err != nil {
		text := err.Error()
		if hint := Hint(text); hint != "" {
			text += "; " + hint
		}
		return Member{Endpoint: endpoint, Error: text, Refused: errors.Is(err, errNoUser)}
	}
	if err := a.addMetrics(ctx, &m); err != nil {
		m.Error = "metrics: " + err.Error()
	}
	return m
}

// url is where a path of an endpoint is. An explicit scheme is used: https:// is never asked in clear text.
func (a *asker) url(endpoint, path string) string {
	if isSocket(endpoint) {
		return socketURL(endpoint, path)
	}
	scheme, rest, found := strings.Cut(endpoint, "://")
	if !found {
		rest, scheme = endpoint, "http"
		if a.options.TLS != nil {
			scheme = "https"
		}
	}
	return scheme + "://" + strings.TrimSuffix(rest, "/") + path
}

// tls is the configuration for an endpoint; nil: plain.
func (a *asker) tls(endpoint string) *tls.Config {
	switch {
	case !strings.HasPrefix(a.url(endpoint, ""), "https://"):
		return nil
	case a.options.TLS == nil:
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return a.options.TLS
}

func (a *asker) get(ctx context.Context, endpoint, path string) (io.ReadCloser, error) {
	url := a.url(endpoint, path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if a.options.User != "" {
		request.SetBasicAuth(a.options.User, a.options.Password)
	}
	response, err := newHTTP(a.options.TLS, endpoint).Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		switch response.StatusCode {
		case http.StatusNotFound:
			return nil, errNotBraid
		case http.StatusUnauthorized:
			return nil, fmt.Errorf("%s: %s: %w", url, response.Status, errNoUser)
		}
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxAnswer), response.Body}, nil
}

func (a *asker) askBraid(ctx context.Context, m *Member) error {
	endpoint := m.Endpoint
	body, err := a.get(ctx, endpoint, "/braid/status")
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(m); err != nil {
		return fmt.Errorf("/braid/status: %w", err)
	}
	m.Endpoint, m.Kind = endpoint, "braid"
	for _, p := range m.Members {
		m.Learner = m.Learner || p.ID == m.ID && p.Role == "learner"
	}
	return nil
}

// askEtcd uses the Status call, which every server of the etcd API has.
func (a *asker) askEtcd(ctx context.Context, m *Member) error {
	at := m.Endpoint
	if !isSocket(at) {
		at = a.url(at, "")
	}
	client, err := clientv3.New(clientv3.Config{Context: ctx, Endpoints: []string{at},
		TLS: a.tls(m.Endpoint), Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := client.Status(ctx, m.Endpoint)
	if err != nil {
		return err
	}
	hex := func(id uint64) string { return strconv.FormatUint(id, 16) }
	m.Kind, m.ID, m.Cluster, m.Version = "etcd", hex(s.Header.MemberId), hex(s.Header.ClusterId), s.Version
	m.Leader, m.IsLeader, m.Learner = hex(s.Leader), s.Leader == s.Header.MemberId, s.IsLearner
	m.Ready, m.Term, m.Revision, m.Alarms = s.Leader != 0, s.RaftTerm, s.Header.Revision, s.Errors
	m.Applied, m.DBBytes, m.DBInUse = s.RaftAppliedIndex, s.DbSize, s.DbSizeInUse
	role := "follower"
	switch {
	case m.IsLeader:
		role = "leader"
	case m.Learner:
		role = "learner"
	}
	m.Instances = []Instance{{Instance: 1, Role: role, Leader: m.Leader, Term: s.RaftTerm, Last: s.RaftIndex,
		Commit: s.RaftIndex, Applied: s.RaftAppliedIndex, ApplyLag: s.RaftIndex - min(s.RaftIndex, s.RaftAppliedIndex)}}
	return nil
}

// addMetrics adds the counters of disk and network.
func (a *asker) addMetrics(ctx context.Context, m *Member) error {
	body, err := a.get(ctx, m.Endpoint, "/metrics")
	if err != nil {
		return err
	}
	defer body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return err
	}
	m.SentBytes = sum(families["etcd_network_peer_sent_bytes_total"])
	m.ReceivedBytes = sum(families["etcd_network_peer_received_bytes_total"])
	if fsync := families["etcd_disk_wal_fsync_duration_seconds"]; fsync != nil {
		for _, metric := range fsync.Metric {
			m.Fsyncs += float64(metric.GetHistogram().GetSampleCount())
			m.FsyncSeconds += metric.GetHistogram().GetSampleSum()
		}
	}
	return nil
}

func sum(family *dto.MetricFamily) float64 {
	total := 0.0
	for _, metric := range family.GetMetric() {
		total += metric.GetCounter().GetValue()
	}
	return total
}

// Bytes writes a size for people.
func Bytes(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; n >= 1024 && i < len(units)-1; i++ {
		n /= 1024
	}
	text := strconv.FormatFloat(n, 'f', 1, 64)
	return strings.TrimSuffix(text, ".0") + " " + units[i]
}
