package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid/internal/launch"
)

// The cluster identifies members by peer URLs and ids: it expects the member unchanged, another one with an empty
// directory, one that runs elsewhere, or none.
func TestWhatBecameOfAMember(t *testing.T) {
	t.Parallel()
	m3 := launch.Member{Name: "m3", PeerPort: 7}
	for name, c := range map[string]struct {
		member *pb.Member
		fate   launch.Fate
	}{
		"it lost its data": {&pb.Member{ID: 3, PeerURLs: []string{"http://127.0.0.1:7"}, ClientURLs: []string{"x"}},
			launch.Fate{}},
		"another one": {&pb.Member{ID: 9, PeerURLs: []string{"http://127.0.0.1:7"}}, launch.Fate{Joins: true}},
		"one that runs": {&pb.Member{ID: 9, PeerURLs: []string{"http://127.0.0.1:7"}, ClientURLs: []string{"x"}},
			launch.Fate{Left: "member 9 was added in its place, and runs with another data directory"}},
		"none at its place": {&pb.Member{ID: 9, PeerURLs: []string{"http://127.0.0.1:8"}},
			launch.Fate{Left: "it was removed from the cluster"}},
	} {
		require.Equal(t, c.fate, fateIn([]*pb.Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:6"}}, c.member}, m3, 3),
			name)
	}
}
