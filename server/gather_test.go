package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server/internal/history"
)

// seen is an answer of /braid/cluster.
type seen struct {
	Cursor  string
	Members []seenMember
}

type seenMember struct {
	ID, Name, Error, Boot string
	Reached, Reset        bool
	Status                map[string]any
	Samples               history.Samples
	Events                []history.Event
}

func watchCluster(t testing.TB, addr, cursor string) (s seen) {
	response, err := http.Get("http://" + addr + "/braid/cluster?cursor=" + cursor)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(body))
	require.NoError(t, json.Unmarshal(body, &s), string(body))
	return s
}

// TestRealWatchedCluster watches a cluster through one member: the samples of all follow each other without gap or
// repetition, a member that is stopped is shown as not reached, and starts again as another one.
func TestRealWatchedCluster(t *testing.T) {
	c := startReal(t, 3)
	client := c.client(c.leader())
	putUntil(t, testContext(t), client, "k", "v")
	asked := c.follower()
	times, boots := map[string][]float64{}, map[string]string{}
	cursor, leads := "", false // the event that a member leads was there
	look := func() seen {
		s := watchCluster(t, c.addrs[asked], cursor)
		cursor = s.Cursor
		for _, m := range s.Members {
			require.Equal(t, m.Boot != boots[m.ID], m.Reset, m.ID)
			if m.Reset {
				times[m.ID], boots[m.ID] = nil, m.Boot
			}
			for i := range m.Samples {
				times[m.ID] = append(times[m.ID], m.Samples[i].At)
			}
		}
		return s
	}
	eventually(t, "samples of all members", func() bool {
		few := false
		for _, m := range look().Members {
			if m.Reached {
				require.Equal(t, m.ID, m.Status["id"])
				require.Equal(t, "all", m.Status["serving"])
			}
			leads = leads || slices.ContainsFunc(m.Events, func(e history.Event) bool { return e.Kind == "leads" })
			few = few || len(times[m.ID]) < 3
		}
		return leads && len(times) == 3 && !few
	})
	for id, at := range times {
		for i := 1; i < len(at); i++ {
			require.Greater(t, at[i], at[i-1], id)
			require.Less(t, at[i]-at[i-1], 20.0, id)
		}
	}

	var other braid.MemberID
	for id := range c.servers {
		if id != asked && id != c.leader() {
			other = id
		}
	}
	was := boots[other.String()]
	c.stop(other)
	reached := func() (is bool) {
		for _, m := range look().Members {
			if m.ID == other.String() {
				is = m.Reached
				require.True(t, is || m.Error != "")
			}
		}
		return is
	}
	eventually(t, "the member to be missed", func() bool { return !reached() })
	c.start(other)
	eventually(t, "the member to be back", func() bool { return reached() && boots[other.String()] != was })
}

// Clients that ask within a second share the reports of one round, and without clients they are dropped.
func TestClientsShareReports(t *testing.T) {
	f := start(t)
	first := watchCluster(t, f.addr, "")
	f.gatherer.mu.Lock()
	began := f.gatherer.began
	f.gatherer.began = time.Now().Add(time.Hour) // a round that never becomes old
	f.gatherer.mu.Unlock()
	require.False(t, began.IsZero())
	second := watchCluster(t, f.addr, "")
	require.Equal(t, first.Cursor, second.Cursor)
	again := watchCluster(t, f.addr, first.Cursor)
	require.False(t, again.Members[0].Reset)
	require.Empty(t, again.Members[0].Samples)
	f.gatherer.drop()
	require.Empty(t, f.gatherer.members)
}

// A member of a version without reports is reached, and the error says so.
func TestAMemberWithoutReports(t *testing.T) {
	w := &reported{history: history.New("")}
	w.note(&report{}, status.Error(codes.Unimplemented, "etcdserver: a member asked for unknown 'o'"))
	require.True(t, w.reached)
	require.Nil(t, w.status)
	require.Contains(t, w.err, "version")
	w.note(&report{}, status.Error(codes.Unavailable, "etcdserver: asking member 1: no link"))
	require.False(t, w.reached)
	require.Equal(t, "asking member 1: no link", w.err)
}

// A question that the asked member does not know is refused with a code of its own.
func TestUnknownQuestions(t *testing.T) {
	f := start(t)
	question, err := encodeAsk('?', nil, nil)
	require.NoError(t, err)
	_, err = f.asker.member(testContext(t), 0x20, question)
	require.Equal(t, codes.Unimplemented, status.Code(err))
}

// A member whose read waits reports that it is not ready before the read ends.
func TestReportedStatusDoesNotWait(t *testing.T) {
	f := start(t)
	held := make(chan struct{})
	defer close(held)
	f.fake.mu.Lock()
	f.fake.held = held
	f.fake.mu.Unlock()
	eventually(t, "the status to say that the member is not ready", func() bool {
		m := watchCluster(t, f.addr, "").Members[0]
		if m.Status["ready"] == true {
			return false
		}
		require.Equal(t, "none", m.Status["serving"])
		require.NotEmpty(t, m.Status["why"])
		return true
	})
}

// TestKeptAnswersAreBounded: clients choose their cursors, and each of them can have an answer of its own.
func TestKeptAnswersAreBounded(t *testing.T) {
	f := start(t)
	for i := range 10 * answersKept {
		_, err := f.gatherer.answer(fmt.Sprint("made up ", i))
		require.NoError(t, err)
		require.LessOrEqual(t, len(f.gatherer.answers), answersKept)
	}
}
