package transport

import (
	"strings"
	"testing"
	"time"
)

// TestSinceWhenALinkIsUpOrDown: it is the moment of the change, not of an attempt.
func TestSinceWhenALinkIsUpOrDown(t *testing.T) {
	began := time.Now()
	a, b := pairOf(t, calm, nil)
	link := func() PeerStats { return a.Stats().Peers[0] }
	eventually(t, "the link", func() bool { return link().Connected })
	up := link().Since
	if up.Before(began) || time.Since(up) > testTimeout {
		t.Errorf("up since %s", up)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its end", func() bool { return !link().Connected })
	down := link().Since
	if !down.After(up) {
		t.Errorf("down since %s, up since %s", down, up)
	}
	eventually(t, "an attempt to connect", func() bool { return strings.Contains(link().LastError, "refused") })
	if again := link(); again.Connected || !again.Since.Equal(down) {
		t.Errorf("%+v, it was down since %s", again, down)
	}
}
