package client

import (
	"time"

	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Settings are the operations of clients, and their timeouts.
type Settings struct {
	Clients, Keys int
	Operations    int // at most, over the run
	Think         time.Duration
	Reads         float64 // share of reads
	Patience      time.Duration
	Load          Load
}

// Load is the settings of the load of all clients.
type Load struct {
	// Pinned is the share of clients that always stay with their member. Leaders is the share of those that ask any
	// member that believes that it leads. The others ask another member if theirs is down.
	Pinned, Leaders float64
	// Hot is the share of operations on the first key.
	Hot float64
	// Burst is the maximal number of operations that a client begins at once; Bursts is the rate of that.
	Burst  int
	Bursts float64
	// Chase is the share of acknowledged writes that are read soon afterwards, at one member or at all.
	Chase float64
	// Pipes is the share of clients that propose without waiting.
	Pipes float64
	// Early is the share of writes that ask for a response before they are applied.
	Early float64
	// Blind is the share of the other writes that are blind.
	Blind float64
	// Withdraw is the share of writes that clients withdraw if there is no response soon.
	Withdraw float64
	// Astray is the share of writes for which clients do not name exactly the group of keys that they touch.
	Astray float64
	// Crowd is the rate at which clients use a new leader at once while another member still believes that it leads.
	// They write at the new leader and read at the old one.
	Crowd float64
	// Overwrite is the share of operations that replace the value of a key.
	Overwrite float64
}

// Clients are the clients of a cluster, with their common state and environment.
type Clients struct {
	*node.Environment
	own *Settings
}

// New returns the clients of an environment. They do nothing before Open.
func New(w *node.Environment, own *Settings) *Clients { return &Clients{w, own} }

// Client returns a client whose owner starts all its operations. home is the member that it belongs to.
func (w *Clients) Client(number int, home protocol.MemberID) Client {
	return Client{w: w, Number: number, Home: home}
}
