// Package status asks members of a cluster for their status: /braid/status and /metrics of a member of braid, the
// Status call of any other server of the etcd API.
//
// It depends on no version of braid, so it also reads members of other versions. status.go asks all members,
// member.go one, cluster.go asks one for the events and rates of all, socket.go is for sockets of Unix, own.go finds
// the settings in an answer.
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

// Member is the known state of one member. Numbers are of its present incarnation; missing bytes and counts are 0.
type Member struct {
	Endpoint string `json:"endpoint"`
	Error    string `json:"error,omitempty"`   // the reason why nothing else is known
	Refused  bool   `json:"refused,omitempty"` // auth is on, and the request had no user
	Kind     string `json:"kind,omitempty"`    // braid, or etcd if only the etcd API answers
	Name     string `json:"name,omitempty"`
	ID       string `json:"id,omitempty"`
	Cluster  string `json:"cluster,omitempty"`
	Version  string `json:"etcd_api_version,omitempty"`
	Braid    string `json:"version,omitempty"` // the version of braid
	// Format is the format of the log and of frames; 0: its version does not report it. KnownFormat is the newest one
	// that the member's program knows.
	Format      int    `json:"format,omitempty"`
	KnownFormat int    `json:"known_format,omitempty"`
	Leader      string `json:"leader,omitempty"`
	IsLeader    bool   `json:"is_leader"`
	Learner     bool   `json:"is_learner"`
	Ready       bool   `json:"ready"`
	Drained     bool   `json:"drained,omitempty"` // it must lead nothing
	// Serving is which requests of clients are answered (all, reads or none), and Why the others are not.
	Serving string `json:"serving,omitempty"`
	Why     string `json:"why,omitempty"`
	Term    uint64 `json:"term"`

	Revision int64  `json:"revision"`
	Protocol string `json:"protocol,omitempty"`
	// Settings are the other strings and numbers in the answer, including the protocol's settings. In JSON they are
	// fields of the member.
	Settings setting.Values `json:"-"`
	// Tolerance describes the failures that the quorums tolerate, if they are not majorities.
	Tolerance string `json:"tolerance,omitempty"`
	// Profile is the version of the settings that members share; 0: the log has none.
	Profile uint64 `json:"profile"`
	Order   string `json:"order,omitempty"`
	Begun   int    `json:"begun_instances,omitempty"` // number of merged instances with which the cluster began
	Applied uint64 `json:"applied_position"`
	// Next is the next slot of the global log, if instances are merged.
	Next         *Slot      `json:"next_slot,omitempty"`
	PendingBytes int64      `json:"pending_bytes"`
	Alarms       []string   `json:"alarms,omitempty"`
	Remedies     []Remedy   `json:"remedies,omitempty"`
	Instances    []Instance `json:"instances"`
	Members      []Peer     `json:"members,omitempty"`
	Voters       Voters     `json:"voters"`
	Fit          Fit        `json:"fit"`

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
	QuotaBytes    int64   `json:"quota_bytes"` // of the database; 0 or less: not known, or none
	// Rates are of the last seconds; nil: they are not known.
	Rates *Rates `json:"rates,omitempty"`
}

// Remedy is what to do about an alarm of a member, in a sentence.
type Remedy struct {
	Alarm  string `json:"alarm"`
	Member string `json:"member"`
	Remedy string `json:"remedy"`
}

// Slot is the place of an instance in a round of the global log.
type Slot struct {
	Round    uint64 `json:"round"`
	Instance uint64 `json:"instance"`
}

// Rounds are the rounds of the global log that an instance fills.
type Rounds struct {
	Applied   uint64 `json:"applied"`
	Committed uint64 `json:"committed"`
	Appended  uint64 `json:"appended"`
	Wanted    *Slot  `json:"wanted,omitempty"` // the slot up to which the others must fill theirs for it
	Skips     uint64 `json:"skips"`            // entries that only skip
}

// Instance is one instance of the protocol on a member.
type Instance struct {
	Instance uint64 `json:"instance"`
	Role     string `json:"role"`
	Leader   string `json:"leader,omitempty"`
	Term     uint64 `json:"term"`
	Ballot   string `json:"ballot,omitempty"` // the term, where it is a ballot
	First    uint64 `json:"first_index"`
	Last     uint64 `json:"last_index"`
	Durable  uint64 `json:"durable_index"`
	Commit   uint64 `json:"commit_index"`
	Applied  uint64 `json:"applied_index"`
	ApplyLag uint64 `json:"apply_lag"`
	// Rounds are set if instances are merged into one log.
	Rounds *Rounds `json:"rounds,omitempty"`
	// K is the number of fragments into which a leader cuts bodies now, 1: none; 0 on other members.
	K uint8 `json:"k,omitempty"`
	// Preparing is the number of bodies that a new leader must make whole before it leads.
	Preparing int  `json:"preparing,omitempty"`
	Lacking   bool `json:"lacking,omitempty"` // committed bodies are missing here
	// Restriping is, on a leader, the number of members that must still make bodies whole before a membership change.
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
	Ending bool   `json:"ending,omitempty"` // leaders fill their slots
	// Unsettled: a membership change waits for the next epoch.
	Unsettled bool `json:"unsettled,omitempty"`
	// NoQuorum: too few members were active recently to decide anything.
	NoQuorum bool      `json:"no_quorum,omitempty"`
	Segments []Segment `json:"segments"`
	Banned   []string  `json:"banned,omitempty"` // voters that do not lead
	// BannedUntil is, for each of these, the epoch in which it leads again, if no one is suspected before; 0: it is not
	// banned.
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

// Fit says which change of the protocol, settings or leader would fit the load better, as the member knows it.
type Fit struct {
	Mode string `json:"mode,omitempty"` // the setting fit; "": the version of the member has none
	// At is when the leader decided last; nil: the member knows no decision of the present leader.
	At   *time.Time `json:"at,omitempty"`
	Wish *Wish      `json:"wish,omitempty"`
	// Waits is what the wish waits for; "": nothing, so with mode on it is carried out.
	Waits string `json:"waits,omitempty"`
	// Changes counts those that the member made as the leader, and TakenBack those that took an earlier one back.
	Changes   uint64 `json:"changes"`
	TakenBack uint64 `json:"taken_back"`
}

// Wish is a change that is expected to gain enough.
type Wish struct {
	Protocol string            `json:"protocol"`
	Settings map[string]string `json:"settings,omitempty"` // those that differ from what a switch would keep
	Leader   string            `json:"leader,omitempty"`   // "": several lead, or it does not matter
	Gain     float64           `json:"gain"`               // the expected throughput, as a factor of today's
	Reason   string            `json:"reason"`
	// TakesBack: it takes an earlier change back. Restores: it lets the others serve, where a member is missing or slow.
	TakesBack bool `json:"takes_back,omitempty"`
	Restores  bool `json:"restores,omitempty"`
}

// Lanes is the member's view of lanes.
type Lanes struct {
	// Open: the member can use its own lane, which is accepted up to Accepted.
	Open     bool   `json:"open"`
	Accepted uint64 `json:"accepted"`
	// Accepting: lanes can be accepted in Generation.
	Generation uint64 `json:"generation"`
	Accepting  bool   `json:"accepting"`
	Fence      bool   `json:"fence,omitempty"` // a membership change waits for a fence of this leader
	// ByLeader: blind commands go to the leader, because that is shorter now.
	ByLeader bool   `json:"by_leader,omitempty"`
	Window   int    `json:"window_bytes"` // of one lane
	Lanes    []Lane `json:"lanes"`
	// Since the member started: bytes sent and received by lanes; bytes that this leader did not send because of
	// signals; and bytes that it sent itself because a follower was missing them.
	Sent        uint64 `json:"sent_bytes"`
	Received    uint64 `json:"received_bytes"`
	Spared      uint64 `json:"spared_bytes"`
	WholeGroups uint64 `json:"whole_groups"`
	WholeBytes  uint64 `json:"whole_bytes"`
	// Missed are groups that the member requested from its leader, Refused are proposals that its full window refused.
	Missed  uint64 `json:"missed"`
	Refused uint64 `json:"refused"`
}

// Lane is a member's part of a lane: numbers of batches.
type Lane struct {
	Member    string `json:"member"` // whose it is
	Life      uint32 `json:"life"`
	Own       bool   `json:"own,omitempty"` // of the present incarnation of the member that says it
	Confirmed uint64 `json:"confirmed"`
	Durable   uint64 `json:"durable"`
	Held      uint64 `json:"held"`
	HeldBytes int    `json:"held_bytes"` // of what is not confirmed
}

// InstancePeer is the leader's view of a member, in an instance.
type InstancePeer struct {
	ID       string `json:"id"`
	Active   bool   `json:"active"`
	Match    uint64 `json:"match_index"`
	Lag      uint64 `json:"lag"`
	Inflight int    `json:"inflight_bytes"`
	Lacking  bool   `json:"lacking"` // committed bodies are missing there
}

// Bodies is the state of a member's large values outside of its database.
type Bodies struct {
	Held       int    `json:"held"`            // whole or a fragment
	Missing    int    `json:"missing"`         // and being fetched from others
	Short      int    `json:"short,omitempty"` // held as fragments, and being made whole
	LiveBytes  int64  `json:"live_bytes"`      // of what is held
	TotalBytes int64  `json:"total_bytes"`     // of the files
	Fetched    uint64 `json:"fetched"`         // made whole from others' fragments
	Served     uint64 `json:"served"`          // fragments sent to others
	Corrupt    uint64 `json:"corrupt"`         // found damaged
	Repaired   uint64 `json:"repaired"`
	Trimmed    uint64 `json:"trimmed"`           // whole copies cut to a fragment
	Failing    string `json:"failing,omitempty"` // the error of the last attempt at a missing one
}

// Disk is the damage to a member's log and snapshots.
type Disk struct {
	Rounds  uint64 `json:"scrub_rounds"`      // completed rounds
	Damaged uint64 `json:"damaged"`           // places that were found
	Mended  uint64 `json:"mended"`            // of which nothing is needed any more
	Failing string `json:"failing,omitempty"` // what is damaged and still needed
}

// Peer is a member's view of another one. A leader also knows its progress, the least of the instances that it leads.
type Peer struct {
	ID         string   `json:"id"`
	Name       string   `json:"name,omitempty"`
	Role       string   `json:"role"`
	Zone       string   `json:"zone,omitempty"` // where it is, as the membership has it
	PeerURLs   []string `json:"peer_urls"`
	ClientURLs []string `json:"client_urls,omitempty"`
	Link       *Link    `json:"link,omitempty"`
	Active     *bool    `json:"active,omitempty"`
	Match      *uint64  `json:"match_index,omitempty"`
	Lag        *uint64  `json:"lag,omitempty"`
	Inflight   *int     `json:"inflight_bytes,omitempty"`
	Lacking    *bool    `json:"lacking,omitempty"` // committed bodies are missing there
}

// Voters are the number of voters, and of those to which the member has a link, itself included.
type Voters struct {
	All     int `json:"all"`
	Reached int `json:"reached"`
}

// Link tells whether a member can send to another one, and since when.
type Link struct {
	Up    bool      `json:"up"`
	Since time.Time `json:"since"`
	Error string    `json:"error,omitempty"` // the last one
}

// Options are the options of Ask.
type Options struct {
	// Endpoints are URLs with a scheme, or host:port, which uses TLS if TLS is set.
	Endpoints []string
	// Only excludes members that are known from answers but are not endpoints.
	Only bool
	// TLS is for endpoints that are asked over TLS; nil: the system's authorities, no certificate.
	TLS *tls.Config
	// User and Password are for members where auth is on.
	User, Password string
	Timeout        time.Duration // for each member
}

// secure reports whether any endpoint is asked over TLS.
func (o *Options) secure() bool {
	return o.TLS != nil || slices.ContainsFunc(o.Endpoints, func(e string) bool {
		return strings.HasPrefix(e, "https://") || strings.HasPrefix(e, "unixs://")
	})
}

// Ask asks all members at once. The result is sorted by name, unreachable ones included.
func Ask(ctx context.Context, o Options) []Member {
	a := asker{options: &o}
	members := a.all(ctx, o.Endpoints, a.one)
	if !o.Only {
		members = append(members, a.all(ctx, missing(members), a.named)...)
	}
	members = nameMissing(members, o.Only)
	a.addRates(ctx, members)
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
			if len(p.ClientURLs) == 0 || answered[p.ID] || answered[address(reachable(p.ClientURLs))] {
				continue
			}
			answered[p.ID] = true
			out = append(out, reachable(p.ClientURLs))
		}
	}
	return out
}

// refuseRedirect prevents that a member redirects the request, with the password, to another server.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// named asks an endpoint that is known only from another member. It must not use weaker security than the options.
func (a *asker) named(ctx context.Context, endpoint string) Member {
	if isSocket(endpoint) {
		return Member{Endpoint: endpoint, Error: "not asked: it advertises a socket of its machine (name it to ask it)"}
	}
	if a.options.secure() && strings.HasPrefix(endpoint, "http://") {
		return Member{Endpoint: endpoint, Error: "not asked: it advertises a plain URL, and the endpoints are asked over " +
			"TLS (name it to ask it in clear text)"}
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
