package epochs

import "github.com/braidlog/braid/protocol"

// Buckets is how many buckets there are. A session is always in the same one.
const Buckets = 256

// Bucket is a set of clients' sessions whose commands one leader proposes.
type Bucket uint8

// BucketOf is the bucket of a client that did not choose one; client is any number that identifies it. The bucket
// does not depend on a command's number, so that a client's commands stay in order.
func BucketOf(client uint64) Bucket { return Bucket(mix(client) >> 56) }

// owner is the place of the leader of a bucket. Each pair of a bucket and a leader has a weight, and the heaviest
// wins (rendezvous hashing). So a bucket moves only if its leader stops leading, or to a leader that is new.
func owner(b Bucket, leaders []protocol.MemberID) uint8 {
	best, most := 0, uint64(0)
	for at, id := range leaders {
		if w := mix(mix(uint64(b)+1) ^ uint64(id)); w > most {
			best, most = at, w
		}
	}
	return uint8(best)
}

// mix is the finalizer of SplitMix64: each bit of the result depends on each bit of x.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
