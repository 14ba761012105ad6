package page

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/braidlog/braid"
)

// View is the content of the status page of a member.
type View struct {
	Name    string `json:"name,omitempty"`
	ID      string `json:"id"`
	Cluster string `json:"cluster"`
	Version string `json:"etcd_api_version"`
	Braid   string `json:"version"`
	// Format is that of the log and of frames, and KnownFormat the newest one that the member's program knows.
	Format      int `json:"format"`
	KnownFormat int `json:"known_format"`
	// Drained: this member is to lead nothing.
	Drained bool `json:"drained"`

	Leader   string `json:"leader,omitempty"`
	IsLeader bool   `json:"is_leader"`
	Term     uint64 `json:"term"`
	Ready    bool   `json:"ready"`
	// Serving is which requests of clients are answered: [ServesAll], [ServesReads] or [ServesNone]; Why the others are
	// not.
	Serving string `json:"serving"`
	Why     string `json:"why,omitempty"`

	Revision int64  `json:"revision"`
	Protocol string `json:"protocol"`
	// Tolerance is set where quorums are not majorities; see braid.Status.
	Tolerance string `json:"tolerance,omitempty"`
	// Profile is the version of the settings that members share; 0: the log has none.
	Profile uint64 `json:"profile"`
	Order   string `json:"order"`
	// Settings are the protocol's own. In JSON they are members of the view, and Texts has them apart from the others.
	Settings braid.Settings    `json:"-"`
	Texts    map[string]string `json:"settings,omitempty"`
	// Begun is the number of instances with which the cluster began, if they are merged.
	Begun   int    `json:"begun_instances,omitempty"`
	Applied uint64 `json:"applied_position"`
	// Next is the slot of the global log that comes next, where instances are merged.
	Next         *Slot      `json:"next_slot,omitempty"`
	LogBytes     int64      `json:"log_bytes"`
	PendingBytes int64      `json:"pending_bytes"`
	DBBytes      int64      `json:"db_bytes"`
	DBInUse      int64      `json:"db_in_use_bytes"`
	QuotaBytes   int64      `json:"quota_bytes"` // of the database; negative: there is none
	Alarms       []string   `json:"alarms,omitempty"`
	Remedies     []Remedy   `json:"remedies,omitempty"` // of the alarms
	Placement    string     `json:"placement"`
	Bodies       Bodies     `json:"bodies"`
	Disk         Disk       `json:"disk"`
	Instances    []Instance `json:"instances"`
	Members      []Member   `json:"members"`
	Voters       Voters     `json:"voters"`
	Fit          Fit        `json:"fit"`
}

// MarshalJSON adds the settings.
func (v View) MarshalJSON() ([]byte, error) {
	type view View // without this method
	object, err := json.Marshal(view(v))
	if err != nil {
		return nil, err
	}
	return v.Settings.Flat(object)
}

// Slot is the place of an instance in a round of the global log.
type Slot struct {
	Round    uint64 `json:"round"`
	Instance uint64 `json:"instance"`
}

func viewSlot(s braid.Slot) *Slot {
	if s == (braid.Slot{}) {
		return nil
	}
	return &Slot{s.Round, uint64(s.Instance)}
}

type Instance struct {
	Instance uint64 `json:"instance"`
	Role     string `json:"role"`
	Leader   string `json:"leader,omitempty"`
	Term     uint64 `json:"term"`
	Ballot   string `json:"ballot,omitempty"` // the term as multi-Paxos writes it: NUMBER.SLOT
	First    uint64 `json:"first_index"`
	Last     uint64 `json:"last_index"`
	Durable  uint64 `json:"durable_index"`
	Commit   uint64 `json:"commit_index"`
	Applied  uint64 `json:"applied_index"`
	// ApplyLag is how many entries are committed and not yet applied here.
	ApplyLag uint64 `json:"apply_lag"`
	// Rounds are set where instances are merged; see braid.InstanceProgress.
	Rounds *Rounds `json:"rounds,omitempty"`
	// K is how many fragments a leader cuts bodies into now; 0 on other members. Preparing
	// is how many bodies a new leader has yet to make whole. Lacking: some are missing here.
	K         uint8 `json:"k,omitempty"`
	Preparing int   `json:"preparing,omitempty"`
	Lacking   bool  `json:"lacking,omitempty"`
	// Restriping is how many more members must hold large values whole before members may leave.
	Restriping int `json:"restriping,omitempty"`
	// Peers is a leader's view of the others.
	Peers []Peer `json:"peers,omitempty"`
	// Lanes are set where the protocol has lanes; see braid.LanesStatus.
	Lanes *Lanes `json:"lanes,omitempty"`
	// Epoch is set where the protocol has epochs; see braid.EpochStatus.
	Epoch *Epoch `json:"epoch,omitempty"`
}

type Rounds struct {
	Applied   uint64 `json:"applied"`
	Committed uint64 `json:"committed"`
	Appended  uint64 `json:"appended"`
	Wanted    *Slot  `json:"wanted,omitempty"`
	Skips     uint64 `json:"skips"`
}

type Peer struct {
	ID            string `json:"id"`
	Active        bool   `json:"active"`
	Match         uint64 `json:"match_index"`
	Lag           uint64 `json:"lag"`
	InflightBytes int    `json:"inflight_bytes"`
	Lacking       bool   `json:"lacking"`
}

// Bodies is about the large values, which are outside of the database.
type Bodies struct {
	Held       int    `json:"held"`
	Missing    int    `json:"missing"`
	Short      int    `json:"short,omitempty"` // being made whole
	LiveBytes  int64  `json:"live_bytes"`
	TotalBytes int64  `json:"total_bytes"`
	Fetched    uint64 `json:"fetched"`
	Served     uint64 `json:"served"`
	Corrupt    uint64 `json:"corrupt"`
	Repaired   uint64 `json:"repaired"`
	Trimmed    uint64 `json:"trimmed"`
	Failing    string `json:"failing,omitempty"`
}

// Disk is about damage to the log and to snapshots.
type Disk struct {
	Rounds  uint64 `json:"scrub_rounds"`
	Damaged uint64 `json:"damaged"`
	Mended  uint64 `json:"mended"`
	Failing string `json:"failing,omitempty"`
}

func viewDisk(st *braid.Status) Disk {
	d := Disk{Rounds: st.Disk.Rounds, Damaged: st.Disk.Damaged, Mended: st.Disk.Mended}
	if st.Disk.Failing != nil {
		d.Failing = st.Disk.Failing.Error()
	}
	return d
}

type Member struct {
	ID         string   `json:"id"`
	Name       string   `json:"name,omitempty"`
	Role       string   `json:"role"`
	Zone       string   `json:"zone,omitempty"`
	PeerURLs   []string `json:"peer_urls"`
	ClientURLs []string `json:"client_urls,omitempty"`
	// Link is absent for this member itself.
	Link *Link `json:"link,omitempty"`
	// The view of this member as the leader of instances, the worst of them; absent elsewhere.
	Active        *bool   `json:"active,omitempty"`
	Match         *uint64 `json:"match_index,omitempty"`
	Lag           *uint64 `json:"lag,omitempty"`
	InflightBytes *int    `json:"inflight_bytes,omitempty"`
	Lacking       *bool   `json:"lacking,omitempty"`
}

func name(id braid.MemberID) string {
	if id == 0 {
		return ""
	}
	return id.String()
}

// Facts are the input of a view.
type Facts struct {
	Name, Cluster string
	ID, Leader    braid.MemberID
	Term          uint64
	NotReady      error // why; nil: it is ready
	Revision      int64
	DBSize, InUse int64 // bytes of the database
	QuotaBytes    int64
	Alarms        []Alarm
	Braid         string // its version
	Log           braid.Status
}

// New makes the view of a member.
func New(f *Facts) View {
	st := &f.Log
	v := View{
		Name: f.Name, ID: f.ID.String(), Cluster: f.Cluster, Version: version.Version,
		Leader: name(f.Leader), IsLeader: f.ID != 0 && f.Leader == f.ID, Term: f.Term,
		Ready: f.NotReady == nil, Braid: f.Braid,
		Format: f.Log.Format, KnownFormat: f.Log.KnownFormat, Drained: f.Log.Drained,
		Revision: f.Revision, Applied: uint64(st.Applied), LogBytes: st.LogBytes, PendingBytes: st.PendingBytes,
		DBBytes: f.DBSize, DBInUse: f.InUse, QuotaBytes: f.QuotaBytes,
		Placement: st.Placement, Bodies: viewBodies(st),
		Disk:     viewDisk(st),
		Protocol: st.Protocol, Tolerance: st.Tolerance, Profile: st.Profile.Version, Settings: st.Settings,
		Order: st.Order, Next: viewSlot(st.Next), Fit: viewFit(&st.Fit),
	}
	v.Texts = maps.Collect(st.Settings.All())
	if st.Order == braid.OrderNiagara {
		v.Begun = st.Begun
	}
	for i := range st.Instances {
		v.Instances = append(v.Instances, viewInstance(st, i))
	}
	v.addAlarms(f)
	v.Voters = viewVoters(st)
	for i := range st.Members {
		v.Members = append(v.Members, viewMember(st, &st.Members[i], f.Leader))
	}
	slices.SortFunc(v.Members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return v
}

func viewInstance(st *braid.Status, i int) Instance {
	in := &st.Instances[i]
	v := Instance{
		Instance: uint64(in.Instance), Role: in.Role.String(), Leader: name(in.Leader), Term: uint64(in.Term),
		Ballot: in.BallotText(),
		First:  uint64(in.First), Last: uint64(in.Last), Durable: uint64(in.Durable), Commit: uint64(in.Commit),
		K: in.K, Preparing: in.Preparing, Lacking: in.Lacking, Restriping: in.Restriping, Lanes: viewLanes(in.Lanes),
		Epoch: viewEpoch(in.Epoch),
	}
	for j := range in.Peers {
		p := &in.Peers[j]
		match, last := uint64(p.Match), uint64(in.Last)
		v.Peers = append(v.Peers, Peer{
			ID: p.ID.String(), Active: p.Active, Match: match, Lag: last - min(match, last), InflightBytes: p.InflightBytes,
			Lacking: p.Lacking,
		})
	}
	if i >= len(st.Progress) {
		return v
	}
	progress := &st.Progress[i]
	v.Applied, v.ApplyLag = uint64(progress.Applied), progress.Waiting
	if v.Commit < v.Applied {
		v.Commit = v.Applied // it is the older news
	}
	if st.Order == braid.OrderNiagara {
		v.Rounds = &Rounds{
			Applied: progress.AppliedRounds, Committed: progress.CommittedRounds, Appended: progress.AppendedRounds,
			Wanted: viewSlot(progress.Wanted), Skips: progress.Skips,
		}
	}
	return v
}

func viewBodies(st *braid.Status) Bodies {
	b := &st.Bodies
	v := Bodies{
		Held: b.Held, Missing: b.Missing, Short: b.Short, LiveBytes: b.LiveBytes, TotalBytes: b.TotalBytes,
		Fetched: b.Fetched, Served: b.Served, Corrupt: b.Corrupt, Repaired: b.Repaired, Trimmed: b.Trimmed,
	}
	if b.Failing != nil {
		v.Failing = b.Failing.Error()
	}
	return v
}

func viewMember(st *braid.Status, m *braid.Member, leader braid.MemberID) Member {
	v := Member{ID: m.ID.String(), Name: m.Name, Role: "follower", Zone: m.Zone, PeerURLs: m.PeerURLs,
		ClientURLs: m.ClientURLs}
	switch {
	case m.ID == leader:
		v.Role = "leader"
	case m.Joining:
		v.Role = "joining"
	case m.Learner:
		v.Role = "learner"
	}
	if v.Link = viewLink(st, m.ID); v.Link != nil && !v.Link.Up && v.Role == "follower" {
		v.Role = "voter" // whether it follows is not known
	}
	for i := range st.Instances {
		for _, p := range viewInstance(st, i).Peers {
			if p.ID == v.ID {
				v.add(&p)
			}
		}
	}
	return v
}

// add adds the view of the leader of one more instance.
func (v *Member) add(p *Peer) {
	if v.Active == nil {
		known := *p
		v.Active, v.Match, v.Lag, v.InflightBytes, v.Lacking = &known.Active, &known.Match, &known.Lag, &known.InflightBytes,
			&known.Lacking
		return
	}
	*v.Active = *v.Active && p.Active
	if p.Lag > *v.Lag {
		*v.Match, *v.Lag = p.Match, p.Lag
	}
	*v.InflightBytes += p.InflightBytes
	*v.Lacking = *v.Lacking || p.Lacking
}
