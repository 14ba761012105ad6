package same

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid/bench"
)

var (
	operations = flag.Int("operations", 1500, "requests for each protocol")
	protocols  = flag.String("protocols", "raft", "protocols of braid, separated by commas")
	nodes      = flag.Int("nodes", 1, "members of braid")
	seed       = flag.Uint64("seed", 1, "of the random requests")
)

// Sizes of values. Of those up to large, braid keeps some outside of its database.
const (
	small = 10_000
	large = 200_000
)

// TestSame sends random requests to etcd and to braid, and demands the same answers.
func TestSame(t *testing.T) {
	rivals, own := build(t, "../"), build(t, "../../../cmd/braid")
	for _, protocol := range strings.Split(*protocols, ",") {
		for _, largest := range []int{small, large} {
			t.Run(fmt.Sprintf("%s/%d", protocol, largest), func(t *testing.T) {
				flags := []string{"--bcrypt-cost", "4"}
				reference := bench.ServerKind{Name: "etcd", Args: []string{"etcd-member"}, Flags: flags}
				compared := bench.ServerKind{Name: protocol, Args: []string{"serve", "--protocol", protocol}, Flags: flags}
				endpoints := [2]string{serve(t, rivals, reference, 1), serve(t, own, compared, *nodes)}
				p, err := dial(endpoints, largest == large)
				require.NoError(t, err)
				defer p.close()
				c := &comparison{T: t, p: p, g: newGenerator(*seed, largest)}
				c.run(*operations / 2)
			})
		}
	}
}

// build builds a program of this repository.
func build(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	c := exec.Command("go", "build", "-o", program, ".")
	c.Dir = dir
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// start starts servers that end with the test.
func start(t *testing.T, program string, kind bench.ServerKind, nodes int) *bench.Servers {
	t.Helper()
	s, err := bench.StartServers(t.Context(), program, kind, nodes, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

// serve starts servers, and returns where the leader serves clients: others answer questions about leaders in another
// way.
func serve(t *testing.T, program string, kind bench.ServerKind, nodes int) string {
	t.Helper()
	for _, endpoint := range start(t, program, kind, nodes).Endpoints {
		conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		st, err := pb.NewMaintenanceClient(conn).Status(t.Context(), &pb.StatusRequest{})
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		if st.Leader == st.Header.MemberId {
			return endpoint
		}
	}
	t.Fatal("no member leads")
	return ""
}

// comparison is one run.
type comparison struct {
	*testing.T
	p *pair
	g *generator

	asked, events int
	differences   []string
}

// A part of the run ends with a comparison of watches. In every third part authentication is on.
const (
	partSize        = 150
	watchesEachPart = 6
	mostDifferences = 20
)

func (c *comparison) run(operations int) {
	began := time.Now()
	for part := 0; c.asked < operations && len(c.differences) < mostDifferences; part++ {
		if part%3 == 2 {
			c.withUsers()
		} else {
			c.requests(partSize)
		}
		c.watches()
	}
	c.Logf("%d requests and %d events compared in %s", c.asked, c.events, time.Since(began).Round(time.Second))
	require.Empty(c, c.differences, "%s", strings.Join(c.differences, "\n"))
}

// ask sends a request to both.
func (c *comparison) ask(r *request) {
	c.asked++
	response, difference := c.p.both(r)
	c.g.learn(response)
	if difference != "" {
		c.differences = append(c.differences, fmt.Sprintf("request %d: %s", c.asked, difference))
	}
}

func (c *comparison) requests(n int) {
	for range n {
		if len(c.differences) >= mostDifferences {
			return
		}
		c.ask(c.g.next())
	}
}

// withUsers are requests while authentication is on, by root and others.
func (c *comparison) withUsers() {
	for _, r := range c.g.enable() {
		c.ask(r)
	}
	for range 10 {
		user := c.g.user()
		c.ask(c.g.login(user, c.g.pass()))
		c.g.as = oneOf(c.g, "", stranger, root, user, user)
		c.requests(partSize / 10)
	}
	c.g.as = ""
	for _, r := range c.g.disable() {
		c.ask(r)
	}
}

// watches compares what some watches send up to now.
func (c *comparison) watches() {
	c.ask(unary[pb.PutResponse](pb.KV_Put_FullMethodName, &pb.PutRequest{Key: []byte("until")}))
	for range watchesEachPart {
		if len(c.differences) > 0 {
			return // revisions may differ from then on
		}
		difference, events, err := c.p.watched(c.g.watch(), c.g.revision)
		require.NoError(c, err)
		c.events += events
		if difference != "" {
			c.differences = append(c.differences, difference)
		}
	}
}
