package store

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

// accepts returns the command of a put that may be answered before it is applied.
func (n *node) accepts(key, value string) []byte {
	n.t.Helper()
	e, err := n.EncodeAccepted(put(key, value).Put)
	require.NoError(n.t, err)
	return e.Command
}

// applies applies such a command, which cannot fail.
func (n *node) applies(command []byte) *pb.PutResponse {
	n.t.Helper()
	result := n.raw(command)[0]
	require.NoError(n.t, result.Err)
	return result.Resp.(*pb.PutResponse)
}

// An accepted put takes effect, whatever changes before it is applied.
func TestAcceptedPutsCannotFail(t *testing.T) {
	n := openTemp(t)
	free := n.accepts("free", "1")
	require.Equal(t, n.Revision()+1, n.applies(free).Header.Revision)
	require.Equal(t, "1", n.get("free"))

	before := n.accepts("auth", "2")
	enableAuth(n)
	var refused *NotAcceptedError
	_, err := n.EncodeAccepted(put("x", "").Put)
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "authentication")
	n.applies(before)
	require.NoError(t, n.doAs(n.login("root", "r"), &pb.InternalRaftRequest{AuthDisable: &pb.AuthDisableRequest{}}))
	require.Equal(t, "2", n.get("auth"))
}

func TestAcceptedPutsNeedNoSpace(t *testing.T) {
	o := testOptions(t.TempDir())
	n := open(t, o)
	first, second := n.accepts("a", "1"), n.accepts("b", "2")
	require.NoError(t, n.Close())
	o.QuotaBytes = 1
	n = open(t, o)
	defer n.Close()
	_, err := n.EncodeAccepted(put("c", "").Put)
	require.ErrorIs(t, err, etcderrors.ErrNoSpace)
	n.applies(first)
	n.raw(within(t, n.Wanted()))
	require.Len(t, n.Alarms(), 1, "the next ones are not accepted")
	var refused *NotAcceptedError
	_, err = n.EncodeAccepted(put("c", "").Put)
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "alarm")
	n.applies(second)
	require.Equal(t, "2", n.get("b"))
}

// Values of any size can be accepted, and nothing but blind puts.
func TestWhatCanBeAccepted(t *testing.T) {
	b := newFakeBodies()
	n := &large{node: open(t, largeOptions(t.TempDir(), b)), bodies: b}
	e, err := n.EncodeAccepted(&pb.PutRequest{Key: []byte("a"), Value: []byte(big('a', 5000))})
	require.NoError(t, err)
	require.NotEmpty(t, e.Body)
	require.NoError(t, n.order(e).Err)
	require.Equal(t, big('a', 5000), n.get("a"))

	for _, r := range []*pb.PutRequest{
		{Key: []byte("a"), Lease: 7}, {Key: []byte("a"), PrevKv: true}, {Key: []byte("a"), IgnoreValue: true},
		{Key: []byte("a"), IgnoreLease: true},
	} {
		require.False(t, IsBlind(r))
		_, err := n.EncodeAccepted(r)
		require.ErrorAs(t, err, new(*NotAcceptedError))
		e, err := n.Encode(context.Background(), &pb.InternalRaftRequest{Put: r})
		require.NoError(t, err)
		require.ErrorIs(t, n.raw(append([]byte{kindAccepted}, e.Command...))[0].Err, ErrBadCommand)
	}
	e, err = n.Encode(context.Background(), del("a", ""))
	require.NoError(t, err)
	inner := append([]byte{kindAccepted}, e.Command...)
	for _, bad := range [][]byte{{kindAccepted}, {kindAccepted, kindClaim}, inner,
		append([]byte{kindAccepted}, inner...)} {
		require.ErrorIs(t, n.raw(bad)[0].Err, ErrBadCommand)
	}
	require.NoError(t, n.Close())
}
