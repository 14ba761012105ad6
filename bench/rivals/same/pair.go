package same

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Names of the two servers.
const (
	etcd  = "etcd"
	braid = "braid"
)

// request is a unary call. As names the user whose token it carries; "": it has none.
type request struct {
	method   string
	message  proto.Message
	response func() proto.Message
	as       string
}

func (r *request) String() string {
	text := r.method[strings.LastIndex(r.method, ".")+1:] + " {" + prototext.Format(r.message) + "}"
	if r.as != "" {
		text += " as " + r.as
	}
	return strings.Join(strings.Fields(text), " ")
}

// side is one of the two servers.
type side struct {
	name   string
	conn   *grpc.ClientConn
	tokens map[string]string // by user
}

// pair is both servers.
type pair struct {
	sides [2]*side
	large bool // some values are large ones of braid
}

func dial(endpoints [2]string, large bool) (*pair, error) {
	p := &pair{large: large}
	for i, name := range []string{etcd, braid} {
		conn, err := grpc.NewClient(endpoints[i], grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
		if err != nil {
			return nil, err
		}
		p.sides[i] = &side{name: name, conn: conn, tokens: map[string]string{}}
	}
	return p, nil
}

func (p *pair) close() {
	for _, s := range p.sides {
		_ = s.conn.Close() // nothing is in progress
	}
}

// answer is what a server said, without what is of its cluster.
type answer struct {
	response proto.Message
	code     string
	text     string
}

func (a answer) String() string {
	if a.code != "OK" {
		return a.code + ": " + a.text
	}
	return "{" + strings.Join(strings.Fields(prototext.Format(a.response)), " ") + "}"
}

func (a answer) equal(b answer) bool {
	return a.code == b.code && a.text == b.text && proto.Equal(a.response, b.response)
}

// answerTimeout is far more than an answer takes.
const answerTimeout = 30 * time.Second

// call sends a request to one server.
func (s *side) call(r *request) answer {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	if r.as != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, s.tokens[r.as])
	}
	response := r.response()
	err := s.conn.Invoke(ctx, r.method, r.message, response)
	s.keepToken(r, response)
	st := status.Convert(err)
	normalize(response)
	return answer{response, st.Code().String(), st.Message()}
}

// both sends a request to both servers. It returns the answer of etcd, and in which way braid's is another one; "": it
// is not.
func (p *pair) both(r *request) (proto.Message, string) {
	var got [2]answer
	done := make(chan struct{})
	go func() {
		got[1] = p.sides[1].call(r)
		close(done)
	}()
	got[0] = p.sides[0].call(r)
	<-done
	if got[0].equal(got[1]) || p.mayDiffer(r, got) {
		return got[0].response, ""
	}
	return got[0].response, fmt.Sprintf("%s\n  etcd:  %s\n  braid: %s", r, got[0], got[1])
}
