package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAClusterGrowsFromOneToThree: added members that do not come, or not yet, block nothing; those that come become
// voters by themselves.
func TestAClusterGrowsFromOneToThree(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"raft", "niagara"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			first := newServeFlags(t)
			serving(t, first, "--protocol", protocol, "--strict-reconfig-check=false")
			ctl := func(args ...string) string {
				return ok(t, append([]string{"ctl", "--endpoints", first.client}, args...)...)
			}
			// A mistyped URL: writes continue, and it can be taken back.
			added := ctl("member", "add", "typo", "--peer-urls", "http://127.0.0.1:1")
			require.Equal(t, "OK", ctl("put", "a", "1"))
			require.Equal(t, "a\n1", ctl("get", "a"))
			require.Contains(t, ctl("member", "list"), "unstarted")
			ctl("member", "remove", strings.Fields(added)[1])

			// Two are added before any of them runs, which etcd's conditions refuse.
			rest := []serveFlags{newServeFlags(t), newServeFlags(t)}
			for i := range rest {
				rest[i].name = fmt.Sprintf("m%d", i+2)
				ctl("member", "add", rest[i].name, "--peer-urls", "http://"+rest[i].peer)
				require.Equal(t, "OK", ctl("put", "a", "2"))
			}
			for i := range rest {
				serving(t, rest[i], "--protocol", protocol, "--initial-cluster-state=existing", "--join", "http://"+first.client)
			}
			eventually(t, "three voters", func(ctx context.Context) bool {
				for _, f := range append(rest, first) {
					if !votersAt(ctx, t, f.client, 3) {
						return false
					}
				}
				return true
			})
			require.Equal(t, "OK", ok(t, "ctl", "--endpoints", rest[1].client, "put", "a", "3"))
		})
	}
}

// votersAt reports whether a member knows exactly this number of voters.
func votersAt(ctx context.Context, t *testing.T, addr string, n int) bool {
	t.Helper()
	var seen struct {
		Members []struct{ Role string }
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/braid/status", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	if json.NewDecoder(response.Body).Decode(&seen) != nil || len(seen.Members) != n {
		return false
	}
	for _, m := range seen.Members {
		if m.Role != "leader" && m.Role != "follower" {
			return false
		}
	}
	return true
}
