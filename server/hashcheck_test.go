package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJudgeHashes(t *testing.T) {
	for name, c := range map[string]struct {
		own    uint32
		votes  bool
		others []uint32
		voters int
		want   agreement
	}{
		"all agree":                       {1, true, []uint32{1, 1}, 3, hashesAgree},
		"one other differs":               {1, true, []uint32{1, 2}, 3, hashesAgree},
		"both others differ from this":    {1, true, []uint32{2, 2}, 3, hashesOutvoted},
		"nobody answers":                  {1, true, nil, 3, hashesAgree},
		"one answers and differs":         {1, true, []uint32{2}, 3, hashesSplit},
		"three hashes":                    {1, true, []uint32{2, 3}, 3, hashesSplit},
		"two of two":                      {1, true, []uint32{2}, 2, hashesSplit},
		"a majority that is not complete": {1, true, []uint32{2, 2, 2}, 5, hashesOutvoted},
		"two against two of five":         {1, true, []uint32{1, 2, 2}, 5, hashesSplit},
		"alone":                           {1, true, nil, 1, hashesAgree},
		"a learner is outvoted":           {1, false, []uint32{2, 2}, 3, hashesOutvoted},
		"a learner agrees":                {1, false, []uint32{1, 1}, 3, hashesAgree},
	} {
		require.Equal(t, c.want, judgeHashes(c.own, c.votes, c.others, c.voters), name)
	}
}
