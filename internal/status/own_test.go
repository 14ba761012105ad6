package status

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// The settings of a member are found in the answer of any version, and are unchanged in the JSON of the member.
func TestSettingsOfAnAnswer(t *testing.T) {
	var m Member
	answer := `{"id":"1","protocol":"iss","quorums":"4/2","tolerance":"t","relays":2,` +
		`"code_k":3,"order":"single","next_slot":null,"later":{"x":1}}`
	require.NoError(t, json.Unmarshal([]byte(answer), &m))
	require.Equal(t, "iss", m.Protocol)
	require.Equal(t, "code-k=3 quorums=4/2 relays=2", m.Settings.String())
	out, err := json.Marshal(m)
	require.NoError(t, err)
	var all map[string]any
	require.NoError(t, json.Unmarshal(out, &all))
	require.EqualValues(t, 2, all["relays"])
	require.Equal(t, "4/2", all["quorums"])
	require.EqualValues(t, 3, all["code_k"])
}
