package replica

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

func TestABodyHasABatchOfItsOwn(t *testing.T) {
	p := &proposer{clock: func() time.Duration { return 0 }, wake: func() {}, maxBatch: 100, maxBytes: 1000}
	results := map[string]error{}
	done := func(name string) member.Done { return func(_ any, err error) { results[name] = err } }
	body := make([]byte, 700)
	require.NoError(t, p.add([]byte("before"), done("before")))
	require.NoError(t, p.addBody([]byte("with"), body, done("with")))
	require.NoError(t, p.add([]byte("after"), done("after")))
	require.ErrorIs(t, p.addBody([]byte("too much"), body, done("too much")), member.ErrOverloaded, "bodies count")

	first, second, third := p.take(), p.take(), p.take()
	require.EqualValues(t, 1, first.Entry.Count)
	require.EqualValues(t, 1, second.Entry.Count)
	require.EqualValues(t, 1, third.Entry.Count)
	second.Seal(protocol.Session{Member: 1, Incarnation: 1}, 2, 1)
	require.Equal(t, &body[0], &second.Entry.Body[0], "not copied")
	require.EqualValues(t, 1, second.Entry.K)
	require.Equal(t, protocol.Digest(body), second.Entry.BodyDigest)
	for _, b := range []*member.Batch{first, second, third} {
		b.Fail(member.ErrStopped)
	}
	require.Zero(t, p.pendingBytes())
	require.Len(t, results, 3)
}
