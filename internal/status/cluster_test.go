package status

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const clusterAnswer = `{"members":[
{"id":"1","name":"m1","reached":true,"samples":{"t":[1,2,3],"writes":[null,10,20],"write_p99_ms":[null,3,2]},
 "events":[{"at":2000,"level":"info","kind":"leads","text":"m1 leads"}]},
{"id":"2","reached":false,"samples":{"t":[1],"writes":[5]},
 "events":[{"at":1000,"level":"warn","kind":"leader-lost","text":"2 lost its leader m1"}]}]}`

func TestEvents(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/braid/cluster", r.URL.Path)
		w.Write([]byte(clusterAnswer))
	}))
	defer s.Close()
	old := httptest.NewServer(http.NotFoundHandler())
	defer old.Close()
	got, err := Events(t.Context(), Options{Endpoints: []string{old.URL, s.URL}, Timeout: 5 * time.Second})
	require.NoError(t, err)
	require.Equal(t, []Event{
		{"2", time.UnixMilli(1000).UTC(), "warn", "leader-lost", "2 lost its leader m1"},
		{"m1", time.UnixMilli(2000).UTC(), "info", "leads", "m1 leads"},
	}, got)
	_, err = Events(t.Context(), Options{Endpoints: []string{old.URL}, Timeout: 5 * time.Second})
	require.ErrorContains(t, err, "it keeps no history")

	a := asker{options: &Options{Timeout: 5 * time.Second}}
	members := []Member{{ID: "1", Kind: "braid", Braid: "0.1.0", Endpoint: s.URL}, {ID: "2"}}
	a.addRates(t.Context(), members)
	require.Equal(t, &Rates{Writes: 15, WriteP99: 3}, members[0].Rates, "null is left out")
	require.Nil(t, members[1].Rates, "it was not reached")
}

// A member that was added and has not started is listed, unless only the endpoints are asked.
func TestMembersThatHaveNotStarted(t *testing.T) {
	var one Member
	s := fake(t, &one)
	one = Member{Name: "m1", ID: "1", Ready: true, Members: []Peer{
		{ID: "1", Name: "m1", Role: "leader", ClientURLs: []string{s.URL}},
		{ID: "2", Role: "joining", PeerURLs: []string{"http://127.0.0.1:7"}},
	}}
	o := Options{Endpoints: []string{s.URL}, Timeout: 5 * time.Second}
	got := Ask(t.Context(), o)
	require.Len(t, got, 2)
	require.Equal(t, "http://127.0.0.1:7", got[0].Endpoint)
	require.Equal(t, "member 2 was added and has not started (joining)", got[0].Error)
	o.Only = true
	require.Len(t, Ask(t.Context(), o), 1)
}
