package instance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/protocol"
)

// sentLinks records the streams of what is sent, and whether a message asks there how much has arrived.
type sentLinks struct {
	bytes int
	sent  []string
}

func (l *sentLinks) Frame(m *protocol.Message) ([][]byte, error) {
	bytes := make([]byte, l.bytes)
	if m.Context != 0 {
		bytes[0] = 1
	}
	return [][]byte{bytes}, nil
}

func (l *sentLinks) Transmit(_ *protocol.Message, stream uint32, parts [][]byte) bool {
	way := "in stream"
	if stream >= instance.AsideStream {
		way = "aside"
	}
	if parts[0][0] == 1 {
		way += ", asks"
	}
	l.sent = append(l.sent, way)
	return true
}

// TestMessagesOvertakeBodies: while a link may be busy with bodies, some messages leave apart from the stream. One that
// is marked for that does so always, and only there.
func TestMessagesOvertakeBodies(t *testing.T) {
	const (
		inStream = protocol.FirstOwnType + iota
		urgent
		bothWays
		sameWay
	)
	codec := &protocol.Codec{Types: []protocol.Traits{{}, {Delivery: protocol.Urgent}, {Delivery: protocol.BothWays},
		{Delivery: protocol.SameWay}}}
	now := time.Duration(0)
	links := &sentLinks{bytes: 1}
	s := instance.Sender{Stream: 1, Codec: codec, Links: links, Now: func() time.Duration { return now },
		LargeMessage: 1000, LargeFor: time.Second}
	sends := func(m protocol.Message) []string {
		links.sent = nil
		m.To = 2
		sent, err := s.Send(&m)
		require.NoError(t, err)
		require.True(t, sent)
		return links.sent
	}
	for range 2 { // without bodies on the way, and long after some
		require.Equal(t, []string{"in stream"}, sends(protocol.Message{Type: inStream}))
		require.Equal(t, []string{"in stream"}, sends(protocol.Message{Type: urgent}))
		require.Equal(t, []string{"in stream, asks"}, sends(protocol.Message{Type: bothWays, Context: 1}))
		require.Equal(t, []string{"aside"}, sends(protocol.Message{Type: bothWays, Aside: true}))
		require.Equal(t, []string{"in stream, asks"}, sends(protocol.Message{Type: sameWay, Context: 1}))
		require.Equal(t, []string{"aside"}, sends(protocol.Message{Type: sameWay}))

		links.bytes = 1000
		require.Equal(t, []string{"in stream"}, sends(protocol.Message{Type: inStream}))
		links.bytes = 1
		require.Equal(t, []string{"in stream"}, sends(protocol.Message{Type: inStream}), "the order matters")
		require.Equal(t, []string{"aside"}, sends(protocol.Message{Type: urgent}))
		require.Equal(t, []string{"aside", "in stream, asks"}, sends(protocol.Message{Type: bothWays, Context: 1}))
		require.Equal(t, []string{"aside"}, sends(protocol.Message{Type: bothWays, Aside: true}))
		now += time.Minute
	}
}
