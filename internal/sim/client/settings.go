package client

import (
	"time"

	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Settings are what clients do, and how long they wait.
type Settings struct {
	Clients, Keys int
	Operations    int // at most, over the run
	Think         time.Duration
	Reads         float64 // share of reads
	Patience      time.Duration
	Load          Load
}

// Load is what all clients have in common.
type Load struct {
	// Pinned is the share of clients that stay with their member whatever happens. Leaders is the
	// share that ask any member that believes that it leads. The others ask another member when
	// theirs is down.
	Pinned, Leaders float64
	// Hot is the share of operations on the first key.
	Hot float64
	// Burst is how many operations a client begins at once at most; Bursts is how often it does so.
	Burst  int
	Bursts float64
	// Chase is how often an acknowledged write is read soon afterwards, at one member or at all.
	Chase float64
	// Pipes is the share of clients that propose without waiting.
	Pipes float64
	// Early is the share of writes that ask for an answer before they are applied.
	Early float64
	// Blind is the share of the other writes that are blind.
	Blind float64
	// Withdraw is the share of writes that clients withdraw if they are not answered soon.
	Withdraw float64
	// Astray is the share of writes of which clients do not say the one group of keys that they touch.
	Astray float64
	// Crowd is how often clients come at once where a member leads and another one still believes
	// that it does. They write at the new leader and read at the old one.
	Crowd float64
	// Overwrite is the share of operations that replace the value of a key.
	Overwrite float64
}

// Clients are the clients of a cluster: what they have in common, and what they run in.
type Clients struct {
	*node.Environment
	own *Settings
}

// New returns the clients of an environment. None of them does anything yet: see Open.
func New(w *node.Environment, own *Settings) *Clients { return &Clients{w, own} }

// Client returns a client that asks only what its owner lets it ask. home is the member that it belongs to.
func (w *Clients) Client(number int, home protocol.MemberID) Client {
	return Client{w: w, Number: number, Home: home}
}
