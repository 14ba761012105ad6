package store

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"go.etcd.io/etcd/api/v3/membershippb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

var mvccRange = mvcc.RangeOptions{}

func sortedLeases(n *node) []string {
	var out []string
	for _, l := range n.Lessor().Leases() {
		keys := l.Keys()
		slices.Sort(keys)
		out = append(out, fmt.Sprintf("lease %d ttl %d keys %q", l.ID, l.TTL(), keys))
	}
	slices.Sort(out)
	return out
}

var (
	downgrade  = &membershippb.DowngradeInfoSetRequest{Enabled: true, Ver: "3.6"}
	badVersion = &membershippb.ClusterVersionSetRequest{Ver: "three"}
)

func snapshotReader(n *node) io.Reader { return bytes.NewReader(n.snapshot()) }
