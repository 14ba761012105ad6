package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
	"github.com/braidlog/braid/server/internal/metrics"
)

// healthCheck is one question of /livez or /readyz.
type healthCheck struct {
	name string
	ask  func(ctx context.Context) error
}

// memberChecks find out whether this member can serve.
type memberChecks struct {
	id      braid.MemberID
	store   *store.Store
	log     Log
	kv      *kvService
	self    *atomic.Pointer[selfView]
	metrics *metrics.Counts
	timeout time.Duration
}

// routes are /health, which answers as JSON, and /livez and /readyz, which answer in words,
// each check also on its own as /readyz/NAME.
func (m *memberChecks) routes() []route {
	local := healthCheck{"serializable_read", func(ctx context.Context) error { return m.checkRead(ctx, true) }}
	routes := append([]route{{"GET /health", http.HandlerFunc(m.serveHealth)}},
		m.checkRoutes("/livez", []healthCheck{local})...)
	return append(routes, m.checkRoutes("/readyz", []healthCheck{
		{"data_corruption", func(context.Context) error { return m.checkCorrupt() }},
		local,
		{"linearizable_read", func(ctx context.Context) error { return braid.Ready(ctx, m.log) }},
		{"non_learner", func(context.Context) error {
			if m.self.Load().learner {
				return errors.New("not supported for learner")
			}
			return nil
		}},
	})...)
}

// ready returns nil if nothing is corrupt and this member is ready in the log (braid.Ready).
// /readyz and the status use this rule. /readyz also refuses learners, because clients must not be
// sent to them.
func (m *memberChecks) ready(ctx context.Context) error {
	if err := m.checkCorrupt(); err != nil {
		return err
	}
	return braid.Ready(ctx, m.log)
}

func (m *memberChecks) checkCorrupt() error {
	return m.checkAlarms(func(a pb.AlarmType) bool { return a != pb.AlarmType_CORRUPT })
}

// serveHealth answers whether this member can serve: no alarm but those in ?exclude=, a
// leader of every instance, and a read; with ?serializable=true only whether it can read locally.
func (m *memberChecks) serveHealth(w http.ResponseWriter, r *http.Request) {
	excluded, serializable := r.URL.Query()["exclude"], r.URL.Query().Get("serializable") == "true"
	err := m.checkAlarms(func(a pb.AlarmType) bool { return slices.Contains(excluded, a.String()) })
	if err == nil && !serializable && !m.self.Load().led {
		err = errors.New("RAFT NO LEADER")
	}
	if err == nil {
		if err = m.checkRead(r.Context(), serializable); err != nil {
			err = fmt.Errorf("RANGE ERROR:%w", err)
		}
	}
	answer := struct {
		Health string `json:"health"`
		Reason string `json:"reason"`
	}{Health: "true"}
	if err == nil {
		m.metrics.HealthOK.Add(1)
		writeJSON(w, answer)
		return
	}
	m.metrics.HealthNo.Add(1)
	answer.Health, answer.Reason = "false", err.Error()
	body, _ := json.Marshal(answer) // two strings: cannot fail
	http.Error(w, string(body), http.StatusServiceUnavailable)
}

func (m *memberChecks) checkAlarms(excluded func(pb.AlarmType) bool) error {
	for _, a := range m.store.Alarms() {
		if a.Alarm == pb.AlarmType_CORRUPT && a.MemberID != uint64(m.id) {
			continue // that is the other member's
		}
		if !excluded(a.Alarm) {
			return errors.New("ALARM " + a.Alarm.String())
		}
	}
	return nil
}

// checkRead reads a key that need not exist.
func (m *memberChecks) checkRead(ctx context.Context, serializable bool) error {
	ctx, cancel := context.WithTimeout(m.store.Auth().WithRoot(ctx), m.timeout)
	defer cancel()
	_, err := m.kv.Range(ctx, &pb.RangeRequest{Key: []byte{0}, KeysOnly: true, Limit: 1, Serializable: serializable})
	return err
}

func (m *memberChecks) checkRoutes(path string, checks []healthCheck) []route {
	all := func(w http.ResponseWriter, r *http.Request) {
		excluded := r.URL.Query()["exclude"]
		wanted := slices.DeleteFunc(slices.Clone(checks), func(c healthCheck) bool {
			return slices.Contains(excluded, c.name)
		})
		m.serveChecks(w, r, path, wanted)
	}
	routes := []route{{"GET " + path, http.HandlerFunc(all)}}
	for _, c := range checks {
		one := func(w http.ResponseWriter, r *http.Request) {
			m.serveChecks(w, r, path, []healthCheck{c})
		}
		routes = append(routes, route{"GET " + path + "/" + c.name, http.HandlerFunc(one)})
	}
	return routes
}

// serveChecks responds "ok", and with the list of checks if that is asked for or one failed.
func (m *memberChecks) serveChecks(w http.ResponseWriter, r *http.Request, path string, checks []healthCheck) {
	var said strings.Builder
	failed := false
	for _, c := range checks {
		err := c.ask(r.Context())
		m.metrics.Checked(path[1:], c.name, err)
		if err != nil {
			failed = true
			fmt.Fprintf(&said, "[-]%s failed: %v\n", c.name, err)
		} else {
			fmt.Fprintf(&said, "[+]%s ok\n", c.name)
		}
	}
	if failed {
		http.Error(w, said.String(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !r.URL.Query().Has("verbose") {
		said.Reset()
	}
	fmt.Fprint(w, said.String()+"ok\n")
}
