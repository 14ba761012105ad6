package datadir

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A member is ahead in each instance whose log is longer than the other member's, not only in the first one.
func TestAhead(t *testing.T) {
	a := map[uint32]logEnd{1: {1, 15}, 2: {1, 4}, 3: {1, 4}}
	b := map[uint32]logEnd{1: {1, 15}, 2: {1, 12}, 3: {2, 1}}
	require.Equal(t, 0, ahead(a, b))
	require.Equal(t, 2, ahead(b, a))
	require.Equal(t, 1, ahead(map[uint32]logEnd{4: {1, 1}}, a), "an instance that the other does not know")
}
