package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid"
)

// TestStagesOfACall: they follow each other from the beginning of the call to its end, and name where one that failed
// was.
func TestStagesOfACall(t *testing.T) {
	const ms = time.Millisecond
	var none *passage
	require.Empty(t, none.stages(ms))
	require.Nil(t, none.writes())
	require.Nil(t, none.reads())

	p := &passage{Context: t.Context(), began: time.Now()}
	require.Empty(t, p.stages(ms), "it did not need the log")
	require.Same(t, p, passageOf(context.WithValue(p, http.ServerContextKey, 1)))

	w := p.writes()
	p.handed = 2 * ms
	require.Equal(t, []passed{{"check", 0, 2 * ms}, {"log", 2 * ms, 9 * ms}}, p.stages(9*ms))
	*w = braid.Stages{Proposed: 1 * ms, Appended: 3 * ms, Committed: 4 * ms, Ordered: 6 * ms, Applied: 8 * ms}
	require.Equal(t, []passed{{"check", 0, 2 * ms}, {"queue", 2 * ms, 3 * ms}, {"append", 3 * ms, 5 * ms},
		{"replicate", 3 * ms, 6 * ms}, {"order", 6 * ms, 8 * ms}, {"apply", 8 * ms, 10 * ms}, {"answer", 10 * ms, 11 * ms}},
		p.stages(11*ms))
	w.Appended = 0
	require.Len(t, p.stages(11*ms), 6)

	*p.writes() = braid.Stages{Proposed: 1 * ms} // its caller gave up
	p.handed = 2 * ms
	require.Equal(t, []passed{{"check", 0, 2 * ms}, {"queue", 2 * ms, 3 * ms}, {"replicate", 3 * ms, 9 * ms}},
		p.stages(9*ms))
	p.writes()
	p.handed = 2 * ms
	p.fails(errors.Join(braid.ErrNotSent, context.DeadlineExceeded))
	require.Equal(t, []passed{{"check", 0, 2 * ms}, {"queue", 2 * ms, 9 * ms}}, p.stages(9*ms))

	r := p.reads()
	p.handed = 2 * ms
	*r = braid.ReadStages{Asked: 1 * ms, Confirmed: 3 * ms, Served: 6 * ms}
	require.Equal(t, []passed{{"check", 0, 2 * ms}, {"queue", 2 * ms, 3 * ms}, {"confirm", 3 * ms, 5 * ms},
		{"wait", 5 * ms, 8 * ms}, {"read", 8 * ms, 9 * ms}}, p.stages(9*ms))

	var out bytes.Buffer
	s := &slowRequests{logger: slog.New(slog.NewTextHandler(&out, nil)), above: ms, base: p.began}
	s.note(p, "/etcdserverpb.KV/Range", &pb.RangeRequest{}, nil, p.began, 9*ms)
	require.Contains(t, out.String(),
		"stages.check=2ms stages.queue=1ms stages.confirm=2ms stages.wait=3ms stages.read=1ms")
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestStagesOfRequests: each stage of puts and reads is in the metrics of the member that was asked, and in its log
// lines of slow ones.
func TestStagesOfRequests(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind func(*Config)) {
		var log lockedBuffer
		c := startReal(t, 3, kind, func(c *Config) {
			c.Logger, c.WarnRequestDuration = slog.New(slog.NewTextHandler(&log, nil)), time.Nanosecond
		})
		ctx := testContext(t)
		id := c.leader()
		client := c.client(id)
		putUntil(t, ctx, client, "k", "v")
		_, err := client.Get(ctx, "k")
		require.NoError(t, err)

		code, body := do(t, http.DefaultClient, http.MethodGet, "http://"+c.addrs[id]+"/metrics", nil)
		require.Equal(t, http.StatusOK, code)
		for request, stages := range map[string][]string{
			"write": {"check", "queue", "append", "replicate", "order", "apply", "answer"},
			"read":  {"check", "queue", "confirm", "wait", "read"},
		} {
			for _, stage := range stages {
				labels := fmt.Sprintf(`{request="%s",stage="%s"}`, request, stage)
				require.Regexp(t, regexp.QuoteMeta(stageMetric+"_count"+labels)+" [1-9]", body)
				if stage != "wait" { // what was confirmed is often applied
					require.Regexp(t, regexp.QuoteMeta(stageMetric+"_sum"+labels)+" .*[1-9]", body)
				}
				require.Contains(t, body, stageMetric+`_bucket{request="`+request+`",stage="`+stage+`",le="0.0001"}`)
			}
		}
		eventually(t, "a put that was logged", func() bool {
			_, err := client.Put(ctx, "k", "v")
			require.NoError(t, err)
			return strings.Contains(log.String(), "stages.replicate=")
		})
		require.Regexp(t, `method=/etcdserverpb.KV/Put .*stages.check=\S+ stages.queue=\S+ .*stages.replicate=\S+ `+
			`stages.order=\S+ stages.apply=\S+ stages.answer=`, log.String())
	})
}

// TestStagesOfAWriteThatFails: what is logged of it says where it waited.
func TestStagesOfAWriteThatFails(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	c := startReal(t, 3, func(c *Config) {
		c.Logger, c.RequestTimeout = slog.New(slog.NewTextHandler(&log, nil)), time.Second
	})
	ctx := testContext(t)
	id := c.leader()
	client := c.client(id)
	putUntil(t, ctx, client, "k", "v")
	for _, m := range c.members {
		if m.ID != id {
			c.stop(m.ID)
		}
	}
	eventually(t, "a put that was not proposed", func() bool {
		_, err := client.Put(ctx, "k", "w")
		require.Error(t, err)
		return regexp.MustCompile(`method=/etcdserverpb.KV/Put .*stages.check=\S+ stages.queue=\S+ err=`).
			MatchString(log.String())
	})
}

const stageMetric = "braid_request_stage_seconds"
