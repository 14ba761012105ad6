package settings

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDatabase(t *testing.T) {
	s, err := load([]string{"--backend-bbolt-freelist-type=array", "--experimental-compaction-batch-limit=50",
		"--backend-batch-limit", "10000", "--experimental-bootstrap-defrag-threshold-megabytes=100"},
		"ETCD_COMPACTION_SLEEP_INTERVAL=1s", "ETCD_BACKEND_BATCH_INTERVAL=1ms")
	require.NoError(t, err)
	require.True(t, s.ArrayFreelist())
	require.Equal(t, Database{BatchInterval: time.Millisecond, BatchLimit: 10_000, freelist: freelistArray,
		CompactionLimit: 50, CompactionPause: time.Second, DefragmentMiB: 100}, s.Database)

	_, err = load([]string{"--backend-bbolt-freelist-type=list", "--compaction-batch-limit=-7",
		"--compaction-sleep-interval=-1s", "--backend-batch-limit=-1"})
	for _, part := range []string{`freelist-type "list": it is map or array`,
		"--compaction-batch-limit: it is not negative",
		"--compaction-sleep-interval: it is not negative", "--backend-batch-limit: it is not negative"} {
		require.ErrorContains(t, err, part)
	}
}
