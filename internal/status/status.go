// Package status asks members of a cluster how they are: /braid/status and /metrics of a
// member of braid, the Status call of any other server of the etcd API.
//
// It knows no version of braid, so that it also reads members of other versions. status.go
// asks all members, member.go one, own.go finds the settings in an answer.
package status

import (
	"context"
	"crypto/tls"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braidlog/braid/protocol/setting"
)

// Member is the known state of one member. Numbers are of its present incarnation; bytes and counts
// that were not told are 0.
type Member struct {
	Endpoint string `json:"endpoint"`
	Error    string `json:"error,omitempty"`   // why nothing else is known
	Refused  bool   `json:"refused,omitempty"` // because auth is on, and no user of the cluster asked
	Kind     string `json:"kind,omitempty"`    // braid, or etcd if only the etcd API answers
	Name     string `json:"name,omitempty"`
	ID       string `json:"id,omitempty"`
	Cluster  string `json:"cluster,omitempty"`
	Version  string `json:"etcd_api_version,omitempty"`
	Leader   string `json:"leader,omitempty"`
	IsLeader bool   `json:"is_leader"`
	Learner  bool   `json:"is_learner"`
	Ready    bool   `json:"ready"`
	Term     uint64 `json:"term"`

	Revision int64  `json:"revision"`
	Protocol string `json:"protocol,omitempty"`
	// Settings are what else the member says in a word or a number, those of its protocol among it. In JSON they are
	// members of the member.
	Settings setting.Values `json:"-"`
	// Tolerance describes the failures that the quorums tolerate, if they are not majorities.
	Tolerance string `json:"tolerance,omitempty"`
	Order     string `json:"order,omitempty"`
	Begun     int    `json:"begun_instances,omitempty"` // with how many merged instances the cluster began
	Applied   uint64 `json:"applied_position"`
	// Next is the slot of the global log that comes next, where instances are merged into one.
	Next         *Slot      `json:"next_slot,omitempty"`
	PendingBytes int64      `json:"pending_bytes"`
	Alarms       []string   `json:"alarms,omitempty"`
	Instances    []Instance `json:"instances"`
	Members      []Peer     `json:"members,omitempty"`
	Voters       Voters     `json:"voters"`

	Placement string `json:"placement,omitempty"`
	Bodies    Bodies `json:"bodies"`
	Disk      Disk   `json:"disk"`

	LogBytes      int64   `json:"log_bytes"`
	DBBytes       int64   `json:"db_bytes"`
	DBInUse       int64   `json:"db_in_use_bytes"`
	SentBytes     float64 `json:"sent_bytes"`     // to other members
	ReceivedBytes float64 `json:"received_bytes"` // from other members
	Fsyncs        float64 `json:"fsyncs"`
	FsyncSeconds  float64 `json:"fsync_seconds"`
}

// Slot is the place of an instance in a round of the global log.
type Slot struct {
	Round    uint64 `json:"round"`
	Instance uint64 `json:"instance"`
}

// Rounds are what an instance fills of the global log, in rounds.
type Rounds struct {
	Applied   uint64 `json:"applied"`
	Committed uint64 `json:"committed"`
	Appended  uint64 `json:"appended"`
	Wanted    *Slot  `json:"wanted,omitempty"` // how far the others have to fill theirs for its sake
	Skips     uint64 `json:"skips"`            // entries proposed for no other purpose
}

// Instance is one instance of the protocol on a member.
type Instance struct {
	Instance uint64 `json:"instance"`
	Role     string `json:"role"`
	Leader   string `json:"leader,omitempty"`
	Term     uint64 `json:"term"`
	First    uint64 `json:"first_index"`
	Last     uint64 `json:"last_index"`
	Durable  uint64 `json:"durable_index"`
	Commit   uint64 `json:"commit_index"`
	Applied  uint64 `json:"applied_index"`
	ApplyLag uint64 `json:"apply_lag"`
	// Rounds are set where instances are merged into one log.
	Rounds *Rounds `json:"rounds,omitempty"`
	// K is how many fragments a leader cuts bodies into now, 1: none; 0 on other members.
	K uint8 `json:"k,omitempty"`
	// Preparing is how many bodies a new leader has to make whole before it leads.
	Preparing int  `json:"preparing,omitempty"`
	Lacking   bool `json:"lacking,omitempty"` // committed bodies are missing here
	// Restriping is, on a leader, how many more members must hold bodies whole before a
	// membership change can be made.
	Restriping int `json:"restriping,omitempty"`
	// Peers is the leader's view of the others.
	Peers []InstancePeer `json:"peers,omitempty"`
	// Lanes are set where the protocol has lanes.
	Lanes *Lanes `json:"lanes,omitempty"`
	// Epoch is set where the protocol has epochs.
	Epoch *Epoch `json:"epoch,omitempty"`
}

// Epoch is the member's view of its epoch.
type Epoch struct {
	Number uint64 `json:"number"`
	First  uint64 `json:"first_index"`
	Last   uint64 `json:"last_index"`
	Ending bool   `json:"ending,omitempty"` // leaders use up their slots
	// Unsettled: a membership change waits for the next epoch.
	Unsettled bool      `json:"unsettled,omitempty"`
	Segments  []Segment `json:"segments"`
	Banned    []string  `json:"banned,omitempty"` // voters that do not lead
	// BannedUntil says of each of these in which epoch it leads again, if no one is suspected before; 0: no ban keeps it.
	BannedUntil []uint64 `json:"banned_until,omitempty"`
	// Since the member started: slots that came into the log, and those without a value.
	Slots   uint64 `json:"slots"`
	Skipped uint64 `json:"skipped"`
}

// Segment is the member's view of one leader's slots in an epoch.
type Segment struct {
	Leader  string `json:"leader"`
	Last    uint64 `json:"last_index"`
	Decided uint64 `json:"decided_index"` // all up to here
	Slots   int    `json:"slots"`
	Skipped int    `json:"skipped"` // decided, without a value
	// Ballot is 0 while the leader proposes itself. By opened a higher one.
	Ballot uint64 `json:"ballot,omitempty"`
	By     string `json:"by,omitempty"`
}

// Lanes is the member's view of lanes.
type Lanes struct {
	// Open: the member can bring commands by its own lane, which is accepted up to Accepted.
	Open     bool   `json:"open"`
	Accepted uint64 `json:"accepted"`
	// Accepting: lanes can be accepted in Generation.
	Generation uint64 `json:"generation"`
	Accepting  bool   `json:"accepting"`
	Fence      bool   `json:"fence,omitempty"` // a membership change waits for a fence of this leader
	Window     int    `json:"window_bytes"`    // of one lane
	Lanes      []Lane `json:"lanes"`
	// Since the member started: bytes that went to others by lanes and came so; that this leader did
	// not send because it sent signals; and that it sent itself because a follower lacked them.
	Sent        uint64 `json:"sent_bytes"`
	Received    uint64 `json:"received_bytes"`
	Spared      uint64 `json:"spared_bytes"`
	WholeGroups uint64 `json:"whole_groups"`
	WholeBytes  uint64 `json:"whole_bytes"`
	// Missed are groups that the member had to ask its leader for, Refused are proposals that its
	// full window refused.
	Missed  uint64 `json:"missed"`
	Refused uint64 `json:"refused"`
}

// Lane is what a member holds of a lane: numbers of batches.
type Lane struct {
	Member    string `json:"member"` // whose it is
	Life      uint32 `json:"life"`
	Own       bool   `json:"own,omitempty"` // of the present incarnation of the member that says it
	Confirmed uint64 `json:"confirmed"`
	Durable   uint64 `json:"durable"`
	Held      uint64 `json:"held"`
	HeldBytes int    `json:"held_bytes"` // of what is not confirmed
}

// InstancePeer is a member as the leader of an instance sees it.
type InstancePeer struct {
	ID       string `json:"id"`
	Active   bool   `json:"active"`
	Match    uint64 `json:"match_index"`
	Lag      uint64 `json:"lag"`
	Inflight int    `json:"inflight_bytes"`
	Lacking  bool   `json:"lacking"` // committed bodies are missing there
}

// Bodies is what a member says of the large values that it keeps outside of its database.
type Bodies struct {
	Held       int    `json:"held"`            // whole or a fragment
	Missing    int    `json:"missing"`         // and being fetched from others
	Short      int    `json:"short,omitempty"` // held as fragments, and being made whole
	LiveBytes  int64  `json:"live_bytes"`      // of what is held
	TotalBytes int64  `json:"total_bytes"`     // of the files
	Fetched    uint64 `json:"fetched"`         // made whole from others' fragments
	Served     uint64 `json:"served"`          // fragments given to others
	Corrupt    uint64 `json:"corrupt"`         // found damaged
	Repaired   uint64 `json:"repaired"`
	Trimmed    uint64 `json:"trimmed"`           // whole copies cut to a fragment
	Failing    string `json:"failing,omitempty"` // why the last attempt at a missing one failed
}

// Disk is what a member says of damage to its log and its snapshots.
type Disk struct {
	Rounds  uint64 `json:"scrub_rounds"`      // how often everything was read
	Damaged uint64 `json:"damaged"`           // places that were found
	Mended  uint64 `json:"mended"`            // of which nothing is needed any more
	Failing string `json:"failing,omitempty"` // what is damaged and still needed
}

// Peer is a member as another one sees it. A leader also knows how far it is, at the worst of
// the instances that it leads.
type Peer struct {
	ID         string   `json:"id"`
	Name       string   `json:"name,omitempty"`
	Role       string   `json:"role"`
	PeerURLs   []string `json:"peer_urls"`
	ClientURLs []string `json:"client_urls,omitempty"`
	Link       *Link    `json:"link,omitempty"`
	Active     *bool    `json:"active,omitempty"`
	Match      *uint64  `json:"match_index,omitempty"`
	Lag        *uint64  `json:"lag,omitempty"`
	Inflight   *int     `json:"inflight_bytes,omitempty"`
	Lacking    *bool    `json:"lacking,omitempty"` // committed bodies are missing there
}

// Voters are how many there are, and how many of them the member has a link to, itself included.
type Voters struct {
	All     int `json:"all"`
	Reached int `json:"reached"`
}

// Link is whether a member can send to another one, and since when that is so.
type Link struct {
	Up    bool      `json:"up"`
	Since time.Time `json:"since"`
	Error string    `json:"error,omitempty"` // the last one
}

// Options say whom to ask and how.
type Options struct {
	// Endpoints are URLs, whose scheme is obeyed, or host:port, which is asked over TLS if TLS is set.
	Endpoints []string
	// Only leaves out members that the endpoints name but that are not endpoints.
	Only bool
	// TLS is for endpoints that are asked over TLS; nil: the system's authorities, no certificate.
	TLS *tls.Config
	// User and Password are for members where auth is on.
	User, Password string
	Timeout        time.Duration // for each member
}

// secure reports whether any endpoint is asked over TLS.
func (o *Options) secure() bool {
	return o.TLS != nil || slices.ContainsFunc(o.Endpoints, func(e string) bool { return strings.HasPrefix(e, "https://") })
}

// Ask asks all members at once. The result is sorted by name, unreachable ones included.
func Ask(ctx context.Context, o Options) []Member {
	a := asker{options: &o, http: &http.Client{
		Transport: &http.Transport{TLSClientConfig: o.TLS, DisableKeepAlives: true}, CheckRedirect: refuseRedirect,
	}}
	members := a.all(ctx, o.Endpoints, a.one)
	if !o.Only {
		members = append(members, a.all(ctx, missing(members), a.named)...)
	}
	slices.SortStableFunc(members, func(x, y Member) int { return strings.Compare(x.Name, y.Name) })
	return slices.CompactFunc(members, func(x, y Member) bool { return x.ID != "" && x.ID == y.ID })
}

// missing returns an endpoint of every member that the answers name and that did not answer.
func missing(answers []Member) []string {
	answered := map[string]bool{}
	for _, m := range answers {
		answered[m.ID] = true
		answered[address(m.Endpoint)] = true
	}
	var out []string
	for _, m := range answers {
		for _, p := range m.Members {
			if len(p.ClientURLs) == 0 || answered[p.ID] || answered[address(p.ClientURLs[0])] {
				continue
			}
			answered[p.ID] = true
			out = append(out, p.ClientURLs[0])
		}
	}
	return out
}

// refuseRedirect keeps a member from sending the question, and the password, to somewhere else.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// named asks an endpoint that only another member named. It must not weaken what was asked for.
func (a *asker) named(ctx context.Context, endpoint string) Member {
	if a.options.secure() && strings.HasPrefix(endpoint, "http://") {
		return Member{Endpoint: endpoint, Error: "not asked: it advertises a plain URL, and the endpoints are asked over TLS (name it to ask it in clear text)"}
	}
	return a.one(ctx, endpoint)
}

func (a *asker) all(ctx context.Context, endpoints []string, one func(context.Context, string) Member) []Member {
	out := make([]Member, len(endpoints))
	var wait sync.WaitGroup
	for i, endpoint := range endpoints {
		wait.Go(func() { out[i] = one(ctx, endpoint) })
	}
	wait.Wait()
	return out
}

// address is the host:port of an endpoint.
func address(endpoint string) string {
	_, rest, found := strings.Cut(endpoint, "://")
	if !found {
		rest = endpoint
	}
	return strings.TrimSuffix(rest, "/")
}
