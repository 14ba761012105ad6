package status

import (
	"net"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAskOverASocket: a socket is asked if it is an endpoint, and not if only another member names it.
func TestAskOverASocket(t *testing.T) {
	var one Member
	tcp := fake(t, &one)
	file := filepath.Join(t.TempDir(), "m1:0")
	l, err := net.Listen("unix", file)
	require.NoError(t, err)
	over := &httptest.Server{Listener: l, Config: tcp.Config}
	over.Start()
	defer over.Close()
	one = Member{Name: "m1", ID: "1", Ready: true, Members: []Peer{
		{ID: "1", Name: "m1", Role: "leader", ClientURLs: []string{"unix://" + file, tcp.URL}},
		{ID: "2", Name: "m2", Role: "follower", ClientURLs: []string{"unix:///of/its/machine"}},
	}}
	got := Ask(t.Context(), Options{Endpoints: []string{"unix://" + file}, Timeout: 5 * time.Second})
	require.Len(t, got, 2)
	require.Contains(t, got[1].Error, "not asked: it advertises a socket of its machine")
	require.Equal(t, "m1", got[0].Name)
	require.Empty(t, got[0].Error)
	require.EqualValues(t, 36, got[0].SentBytes)
	require.Equal(t, tcp.URL, reachable(one.Members[0].ClientURLs))
}
