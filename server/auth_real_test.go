package server

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/testsize"
)

// secured is a cluster with authentication on: root, and bob, who may write and read b….
type secured struct {
	*realCluster
	ctx  context.Context
	root *clientv3.Client
}

func startSecured(t *testing.T, change ...func(*Config)) *secured {
	c := &secured{startReal(t, 3, change...), testContext(t), nil}
	c.leader()
	all := c.client()
	for _, step := range []error{
		second(all.UserAdd(c.ctx, "root", "secret")), second(all.RoleAdd(c.ctx, "root")),
		second(all.UserGrantRole(c.ctx, "root", "root")), second(all.RoleAdd(c.ctx, "bs")),
		second(all.RoleGrantPermission(c.ctx, "bs", "b", "c", clientv3.PermissionType(clientv3.PermReadWrite))),
		second(all.UserAdd(c.ctx, "bob", "b")), second(all.UserGrantRole(c.ctx, "bob", "bs")),
		second(all.AuthEnable(c.ctx)),
	} {
		require.NoError(t, step)
	}
	c.root = c.clientAs("root", "secret")
	return c
}

// clientAs returns a client of all members with a password.
func (c *secured) clientAs(user, password string) *clientv3.Client {
	var endpoints []string
	for _, addr := range c.addrs {
		endpoints = append(endpoints, addr)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Username: user, Password: password,
		Logger: zap.NewNop(), DialTimeout: time.Minute})
	require.NoError(c.t, err)
	c.t.Cleanup(func() { client.Close() })
	return client
}

// conn returns a connection to a member that repeats no call: clients of etcd repeat what a token is refused for.
func (c *secured) conn(id braid.MemberID) *grpc.ClientConn {
	conn, err := grpc.NewClient(c.addrs[id], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(c.t, err)
	c.t.Cleanup(func() { conn.Close() })
	return conn
}

// login returns a token that a member made.
func (c *secured) login(id braid.MemberID, user, password string) string {
	login := &pb.AuthenticateRequest{Name: user, Password: password}
	resp, err := pb.NewAuthClient(c.conn(id)).Authenticate(c.ctx, login)
	require.NoError(c.t, err)
	return resp.Token
}

// atPresent makes a call again that a member refuses because it lags behind a change of users, unless that is wanted.
// Clients of etcd do so, too.
func (c *secured) atPresent(want error, call func() error) (err error) {
	c.t.Helper()
	eventually(c.t, "the change of users", func() bool {
		err = call()
		return want == rpctypes.ErrGRPCAuthOldRevision || err == nil || err.Error() != rpctypes.ErrGRPCAuthOldRevision.Error()
	})
	return err
}

// everywhere requires that each member gives the same answer to a token: nil, or an error of etcd.
func (c *secured) everywhere(token string, want error) {
	c.t.Helper()
	for _, m := range c.members {
		as, conn := withLogin(c.ctx, token), c.conn(m.ID)
		put := c.atPresent(want, func() error {
			return second(pb.NewKVClient(conn).Put(as, &pb.PutRequest{Key: []byte("b")}))
		})
		get := c.atPresent(want, func() error {
			return second(pb.NewKVClient(conn).Range(as, &pb.RangeRequest{Key: []byte("b")}))
		})
		for _, err := range []error{put, get} {
			if want == nil {
				require.NoError(c.t, err, m.Name)
			} else {
				requireStatus(c.t, want, err)
			}
		}
	}
}

// What a change of users or roles takes away is refused by each member as soon as the change is acknowledged, and what
// it gives is allowed, whichever member made the change, with the errors of etcd.
func TestRealTokensAfterChanges(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]func(*Config){
		"raft": func(*Config) {}, "iss": func(c *Config) { c.Node.Protocol = braid.ISS{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startSecured(t, kind)
			token := c.login(c.members[0].ID, "bob", "b")
			c.everywhere(token, nil)
			require.NoError(t, second(c.root.RoleRevokePermission(c.ctx, "bs", "b", "c")))
			c.everywhere(token, rpctypes.ErrGRPCPermissionDenied)
			rights := clientv3.PermissionType(clientv3.PermReadWrite)
			require.NoError(t, second(c.root.RoleGrantPermission(c.ctx, "bs", "b", "c", rights)))
			c.everywhere(token, nil)
			require.NoError(t, second(c.root.UserRevokeRole(c.ctx, "bob", "bs")))
			c.everywhere(token, rpctypes.ErrGRPCPermissionDenied)
			require.NoError(t, second(c.root.UserGrantRole(c.ctx, "bob", "bs")))
			c.everywhere(token, nil)
			require.NoError(t, second(c.root.UserChangePassword(c.ctx, "bob", "new")))
			c.everywhere(token, rpctypes.ErrGRPCInvalidAuthToken)
			token = c.login(c.members[1].ID, "bob", "new")
			c.everywhere(token, nil)
			require.NoError(t, second(c.root.UserDelete(c.ctx, "bob")))
			c.everywhere(token, rpctypes.ErrGRPCInvalidAuthToken)
		})
	}
}

// A member that was restarted knows no tokens from before. It refuses a watch with such a token as etcd does, and a
// client with a password gets a new one and continues the watch that it had.
func TestRealWatchOutlivesItsToken(t *testing.T) {
	t.Parallel()
	c := startSecured(t)
	here := c.members[0].ID
	token := c.login(here, "bob", "b")
	bob := c.clientAs("bob", "b")
	bob.SetEndpoints(c.addrs[here])
	events := bob.Watch(c.ctx, "b", clientv3.WithCreatedNotify())
	require.True(t, (<-events).Created)
	c.stop(here)
	c.start(here)
	putUntil(t, c.ctx, c.root, "b", "v")
	resp := <-events
	require.NoError(t, resp.Err())
	require.Len(t, resp.Events, 1)

	stream, err := pb.NewWatchClient(c.conn(here)).Watch(withLogin(c.ctx, token))
	require.NoError(t, err)
	w := &rawWatch{t, stream}
	refused := w.create(&pb.WatchCreateRequest{Key: []byte("b"), WatchId: 7})
	require.True(t, refused.Created && refused.Canceled)
	require.EqualValues(t, noWatch, refused.WatchId)
	require.Equal(t, rpctypes.ErrGRPCInvalidAuthToken.Error(), refused.CancelReason)
}

// signedBy makes members sign tokens by a key, and returns its file.
func signedBy(t *testing.T, key string) string {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), key)
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return fmt.Sprintf("jwt,priv-key=%s,sign-method=EdDSA,ttl=10m", file)
}

// JWTs name the revision of users and roles: any change of these makes all of them invalid, as with etcd. The key is
// changed by a restart of one member after another. Clients with a password notice nothing.
func TestRealJWT(t *testing.T) {
	t.Parallel()
	first, next := signedBy(t, "first"), signedBy(t, "next")
	c := startSecured(t, func(cfg *Config) { cfg.Store.AuthToken = first })
	token := c.login(c.members[0].ID, "bob", "b")
	c.everywhere(token, nil)
	require.NoError(t, second(c.root.UserAdd(c.ctx, "carol", "c")))
	c.everywhere(token, rpctypes.ErrGRPCAuthOldRevision)
	token = c.login(c.members[0].ID, "bob", "b")
	bob := c.clientAs("bob", "b")
	for _, m := range c.members {
		c.configs[m.ID].Store.AuthToken = next
		c.stop(m.ID)
		putUntil(t, c.ctx, bob, "b", "without "+m.Name)
		c.start(m.ID)
		putUntil(t, c.ctx, bob, "b", "with "+m.Name)
	}
	c.everywhere(token, rpctypes.ErrGRPCInvalidAuthToken)
	c.everywhere(c.login(c.members[1].ID, "bob", "b"), nil)
}

// A simple token ends when it was not used for its time.
func TestTokensExpire(t *testing.T) {
	testsize.Long(t)
	t.Parallel() // it waits for a clock
	f := start(t, func(c *Config) { c.Store.AuthTokenTTL = time.Second })
	ctx := testContext(t)
	f.enableAuth(t, ctx)
	resp, err := f.client.Authenticate(ctx, "root", "secret")
	require.NoError(t, err)
	get := func() error {
		return second(f.kvClient().Range(withLogin(ctx, resp.Token), &pb.RangeRequest{Key: []byte("k")}))
	}
	require.NoError(t, get())
	<-time.After(4 * time.Second) // the times of tokens are checked once a second
	requireStatus(t, rpctypes.ErrGRPCInvalidAuthToken, get())
}
