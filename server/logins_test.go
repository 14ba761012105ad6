package server

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// floodLogins sends many wrong passwords of root at once. It returns a channel that is closed when all are answered.
func floodLogins(ctx context.Context, conn *grpc.ClientConn, logins int) <-chan struct{} {
	var flood sync.WaitGroup
	for i := range logins {
		flood.Go(func() {
			wrong := &pb.AuthenticateRequest{Name: "root", Password: fmt.Sprint("wrong", i)}
			_, _ = pb.NewAuthClient(conn).Authenticate(ctx, wrong) // refused, or its time is over
		})
	}
	ended := make(chan struct{})
	go func() {
		flood.Wait()
		close(ended)
	}()
	return ended
}

// A client whose many wrong passwords take all the time that there is for passwords holds up the logins of its own
// address, and those of others wait for a few passwords only.
func TestLoginsOfOthersHaveTheirTurn(t *testing.T) {
	f := start(t, func(c *Config) { c.Store.BcryptCost = 8 })
	ctx := testContext(t)
	root, _ := f.enableAuth(t, ctx)
	flooding, stop := context.WithCancel(ctx)
	ended := floodLogins(flooding, f.connFrom(t, "127.0.0.2"), 300)
	require.NoError(t, second(root.UserAdd(ctx, "new", "p")))
	login := &pb.AuthenticateRequest{Name: "new", Password: "p"}
	require.NoError(t, second(pb.NewAuthClient(f.connFrom(t, "127.0.0.3")).Authenticate(ctx, login)))
	select {
	case <-ended:
		require.Fail(t, "the flood was over before: nothing was shown")
	default:
	}
	stop()
	<-ended
}

// BenchmarkRealPutDuringLogins has the latency of a user's puts at the leader, also while another client sends 300
// wrong passwords at once to it.
func BenchmarkRealPutDuringLogins(b *testing.B) {
	for _, members := range []int{1, 3} {
		b.Run(fmt.Sprint("members=", members), func(b *testing.B) {
			c := startReal(b, members, func(c *Config) { c.Store.BcryptCost = bcrypt.DefaultCost })
			leader := c.leader()
			client := c.client(leader)
			for _, step := range []error{
				second(client.UserAdd(b.Context(), "root", "secret")), second(client.RoleAdd(b.Context(), "root")),
				second(client.UserGrantRole(b.Context(), "root", "root")), second(client.AuthEnable(b.Context())),
			} {
				require.NoError(b, step)
			}
			login, err := client.Authenticate(b.Context(), "root", "secret")
			require.NoError(b, err)
			ctx := withLogin(b.Context(), login.Token)
			kv := pb.NewKVClient(client.ActiveConnection())
			p99 := func() float64 {
				took := make([]time.Duration, max(100, b.N))
				for i := range took {
					began := time.Now()
					require.NoError(b, second(kv.Put(ctx, &pb.PutRequest{Key: []byte("k"), Value: []byte("v")})))
					took[i] = time.Since(began)
				}
				slices.Sort(took)
				return float64(took[len(took)*99/100].Microseconds()) / 1000
			}
			b.ReportMetric(p99(), "ms-p99-quiet")
			flooding, stop := context.WithCancel(b.Context())
			ended := floodLogins(flooding, c.client(leader).ActiveConnection(), 300)
			b.ReportMetric(p99(), "ms-p99-logins")
			b.ReportMetric(0, "ns/op")
			stop()
			<-ended
		})
	}
}
