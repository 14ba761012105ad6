package server

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server/internal/page"
)

// Settings are members of the status, by the names that earlier versions gave them.
func TestSettingsInTheStatus(t *testing.T) {
	var settings braid.Settings
	require.NoError(t, json.Unmarshal([]byte(`{"quorums": "4/2", "relays": 2}`), &settings))
	out, err := json.Marshal(page.New(&page.Facts{Log: braid.Status{Protocol: "iss", Settings: settings}}))
	require.NoError(t, err)
	var all map[string]any
	require.NoError(t, json.Unmarshal(out, &all))
	require.EqualValues(t, 2, all["relays"])
	require.Equal(t, "4/2", all["quorums"])
	require.Equal(t, map[string]any{"relays": "2", "quorums": "4/2"}, all["settings"], "apart from the facts")
	out, err = json.Marshal(page.New(&page.Facts{Log: braid.Status{Protocol: "raft"}}))
	require.NoError(t, err)
	require.NotContains(t, string(out), "relays")
}
