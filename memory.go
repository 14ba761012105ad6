package braid

import "runtime/debug"

const (
	// cacheBytes is the default size of a member's cache of whole bodies, and that of what its logs keep in memory.
	cacheBytes = 64 << 20
	// cacheShare: each of the two is at most 1/cacheShare of the memory that the process may use.
	cacheShare = 16
	// leastLogCache is what an instance's log keeps in any case.
	leastLogCache = 1 << 20
)

// defaultCache is the size of a cache with Go's memory limit (GOMEMLIMIT).
func defaultCache() int { return cacheWithin(debug.SetMemoryLimit(-1)) }

func cacheWithin(limit int64) int { return int(min(cacheBytes, max(limit, 0)/cacheShare)) }

// logCache is what the log of each instance keeps in memory: a member has one bound, however many instances it hosts.
func logCache(all, instances int) int { return max(all/max(1, instances), leastLogCache) }
