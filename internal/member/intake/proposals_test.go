package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

func TestABodyHasABatchOfItsOwn(t *testing.T) {
	p := &Proposals{MaxBatch: 100, MaxBytes: 1000}
	p.Free = func(b *Batch) { p.Settled(0, b) }
	now := func() time.Duration { return 0 }
	add := func(command string, done Done) error {
		_, err := p.Add(now, []byte(command), done)
		return err
	}
	addBody := func(command string, body []byte, done Done) error {
		_, err := p.AddBody(now, NewBodyBatch([]byte(command), body, done))
		return err
	}
	results := map[string]error{}
	done := func(name string) Done { return func(_ any, err error) { results[name] = err } }
	body := make([]byte, 700)
	require.NoError(t, add("before", done("before")))
	require.NoError(t, addBody("with", body, done("with")))
	require.NoError(t, add("after", done("after")))
	require.ErrorIs(t, addBody("too much", body, done("too much")), member.ErrOverloaded, "bodies count")

	first, second, third := p.Take(), p.Take(), p.Take()
	require.EqualValues(t, 1, first.Entry.Count)
	require.EqualValues(t, 1, second.Entry.Count)
	require.EqualValues(t, 1, third.Entry.Count)
	second.Seal(protocol.Session{Member: 1, Incarnation: 1}, 2, 1)
	require.Equal(t, &body[0], &second.Entry.Body[0], "not copied")
	require.EqualValues(t, 1, second.Entry.K)
	require.Equal(t, protocol.Digest(body), second.Entry.BodyDigest)
	for _, b := range []*Batch{first, second, third} {
		b.Fail(member.ErrStopped)
	}
	require.Zero(t, p.Bytes())
	require.Len(t, results, 3)
}
