package same

import (
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// generator draws requests. What it knows of the state makes them meet something; it need not be right.
type generator struct {
	*rand.Rand
	revision int64
	as       string // the user of requests that are no changes of users
	largest  int    // bytes of a value
}

func newGenerator(seed uint64, largest int) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 0)), largest: largest}
}

func (g *generator) yes(share float64) bool { return g.Float64() < share }

// oneOf draws from a list.
func oneOf[T any](g *generator, all ...T) T { return all[g.IntN(len(all))] }

// next draws a request.
func (g *generator) next() *request {
	kind := g.weighted(
		weight{30, g.put}, weight{20, g.get}, weight{10, g.remove}, weight{25, g.txn}, weight{2, g.compact},
		weight{2, g.grant}, weight{1, g.revoke}, weight{3, g.timeToLive}, weight{1, g.leases},
		weight{2, g.hashKV}, weight{1, g.alarm}, weight{0.3, g.defragment}, weight{1, g.members}, weight{2, g.account},
		weight{0.5, g.downgrade})
	r := kind()
	if r.as == "" {
		r.as = g.as
	}
	return r
}

type weight struct {
	of   float64
	draw func() *request
}

func (g *generator) weighted(all ...weight) func() *request {
	sum := 0.0
	for _, w := range all {
		sum += w.of
	}
	at := g.Float64() * sum
	for _, w := range all {
		if at -= w.of; at < 0 {
			return w.draw
		}
	}
	return all[0].draw
}

// learn takes in what an answer says of the state.
func (g *generator) learn(response proto.Message) {
	if r, ok := response.(interface{ GetHeader() *pb.ResponseHeader }); ok && r.GetHeader() != nil {
		g.revision = max(g.revision, r.GetHeader().Revision)
	}
}

// unary makes a request of a service's method, as its full name.
func unary[T any, P interface {
	*T
	proto.Message
}](method string, message proto.Message) *request {
	return &request{method: method, message: message, response: func() proto.Message { return P(new(T)) }}
}
