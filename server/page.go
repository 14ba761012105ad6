package server

import (
	"cmp"
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/braidlog/braid"
)

// statusView is what /braid/status says of a member and of what it knows.
type statusView struct {
	Name     string `json:"name,omitempty"`
	ID       string `json:"id"`
	Cluster  string `json:"cluster"`
	Version  string `json:"etcd_api_version"`
	Leader   string `json:"leader,omitempty"`
	IsLeader bool   `json:"is_leader"`
	Term     uint64 `json:"term"`
	Ready    bool   `json:"ready"`

	Revision int64  `json:"revision"`
	Protocol string `json:"protocol"`
	// Quorums and Tolerance are set where quorums are no majorities; see braid.Status.
	Quorums   string `json:"quorums,omitempty"`
	Tolerance string `json:"tolerance,omitempty"`
	Order     string `json:"order"`
	// Settings are the protocol's own. In JSON they are members of the view.
	Settings braid.Settings `json:"-"`
	// Begun is the number of instances with which the cluster began, if they are woven.
	Begun   int    `json:"begun_instances,omitempty"`
	Applied uint64 `json:"applied_position"`
	// Next is the slot of the global log that comes next, where instances are woven.
	Next         *slotView      `json:"next_slot,omitempty"`
	LogBytes     int64          `json:"log_bytes"`
	PendingBytes int64          `json:"pending_bytes"`
	DBBytes      int64          `json:"db_bytes"`
	DBInUse      int64          `json:"db_in_use_bytes"`
	Alarms       []string       `json:"alarms,omitempty"`
	Placement    string         `json:"placement"`
	Bodies       bodiesView     `json:"bodies"`
	Disk         diskView       `json:"disk"`
	Instances    []instanceView `json:"instances"`
	Members      []memberView   `json:"members"`
	Voters       votersView     `json:"voters"`
}

// MarshalJSON adds the settings.
func (v statusView) MarshalJSON() ([]byte, error) {
	type view statusView // without this method
	object, err := json.Marshal(view(v))
	if err != nil {
		return nil, err
	}
	return v.Settings.Flat(object)
}

// slotView is the place of an instance in a round of the global log.
type slotView struct {
	Round    uint64 `json:"round"`
	Instance uint64 `json:"instance"`
}

func viewSlot(s braid.Slot) *slotView {
	if s == (braid.Slot{}) {
		return nil
	}
	return &slotView{s.Round, uint64(s.Instance)}
}

type instanceView struct {
	Instance uint64 `json:"instance"`
	Role     string `json:"role"`
	Leader   string `json:"leader,omitempty"`
	Term     uint64 `json:"term"`
	First    uint64 `json:"first_index"`
	Last     uint64 `json:"last_index"`
	Durable  uint64 `json:"durable_index"`
	Commit   uint64 `json:"commit_index"`
	Applied  uint64 `json:"applied_index"`
	// ApplyLag is how many entries are committed and not yet applied here.
	ApplyLag uint64 `json:"apply_lag"`
	// Rounds are set where instances are woven; see braid.InstanceProgress.
	Rounds *roundsView `json:"rounds,omitempty"`
	// K is how many fragments a leader cuts bodies into now; 0 on other members. Preparing
	// is how many bodies a new leader has yet to make whole. Lacking: some are missing here.
	K         uint8 `json:"k,omitempty"`
	Preparing int   `json:"preparing,omitempty"`
	Lacking   bool  `json:"lacking,omitempty"`
	// Restriping is how many more members must hold large values whole before members may leave.
	Restriping int `json:"restriping,omitempty"`
	// Peers is what a leader knows of the others.
	Peers []peerView `json:"peers,omitempty"`
	// Lanes are set where the protocol has lanes; see braid.LanesStatus.
	Lanes *lanesView `json:"lanes,omitempty"`
	// Epoch is set where the protocol has epochs; see braid.EpochStatus.
	Epoch *epochView `json:"epoch,omitempty"`
}

type roundsView struct {
	Applied   uint64    `json:"applied"`
	Committed uint64    `json:"committed"`
	Appended  uint64    `json:"appended"`
	Wanted    *slotView `json:"wanted,omitempty"`
	Skips     uint64    `json:"skips"`
}

type peerView struct {
	ID            string `json:"id"`
	Active        bool   `json:"active"`
	Match         uint64 `json:"match_index"`
	Lag           uint64 `json:"lag"`
	InflightBytes int    `json:"inflight_bytes"`
	Lacking       bool   `json:"lacking"`
}

// bodiesView is about the large values, which are outside of the database.
type bodiesView struct {
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

// diskView is about damage to the log and to snapshots.
type diskView struct {
	Rounds  uint64 `json:"scrub_rounds"`
	Damaged uint64 `json:"damaged"`
	Mended  uint64 `json:"mended"`
	Failing string `json:"failing,omitempty"`
}

func viewDisk(st *braid.Status) diskView {
	d := diskView{Rounds: st.Disk.Rounds, Damaged: st.Disk.Damaged, Mended: st.Disk.Mended}
	if st.Disk.Failing != nil {
		d.Failing = st.Disk.Failing.Error()
	}
	return d
}

type memberView struct {
	ID         string   `json:"id"`
	Name       string   `json:"name,omitempty"`
	Role       string   `json:"role"`
	PeerURLs   []string `json:"peer_urls"`
	ClientURLs []string `json:"client_urls,omitempty"`
	// Link is absent for this member itself.
	Link *linkView `json:"link,omitempty"`
	// What this member knows as the leader of instances, the worst of them; absent elsewhere.
	Active        *bool   `json:"active,omitempty"`
	Match         *uint64 `json:"match_index,omitempty"`
	Lag           *uint64 `json:"lag,omitempty"`
	InflightBytes *int    `json:"inflight_bytes,omitempty"`
	Lacking       *bool   `json:"lacking,omitempty"`
}

// Silent reports whether the leader does not hear from the member.
func (v memberView) Silent() bool { return v.Active != nil && !*v.Active }

// Lacks reports whether the leader knows that large values are missing there.
func (v memberView) Lacks() bool { return v.Lacking != nil && *v.Lacking }

// Cut is the number of fragments into which this member, as a leader, cuts new large values; 0: it
// leads nothing.
func (v statusView) Cut() uint8 {
	for _, in := range v.Instances {
		if in.K > 0 {
			return in.K
		}
	}
	return 0
}

func name(id braid.MemberID) string {
	if id == 0 {
		return ""
	}
	return id.String()
}

func (s *Server) view(ctx context.Context) statusView {
	ready := s.ready(ctx) == nil // may take a while: what is told is of after that
	st, self := s.log.Status(), s.self.Load()
	v := statusView{
		Name: s.cfg.Name, ID: s.id.String(), Cluster: braid.MemberID(s.cfg.Node.Cluster).String(), Version: version.Version,
		Leader: name(self.leader), IsLeader: self.isLeader(), Term: self.term, Ready: ready,
		Revision: s.store.Revision(), Applied: uint64(st.Applied), LogBytes: st.LogBytes, PendingBytes: st.PendingBytes,
		DBBytes: s.store.DBSize(), DBInUse: s.store.DBSizeInUse(), Placement: st.Placement, Bodies: viewBodies(&st), Disk: viewDisk(&st),
		Protocol: st.Protocol, Quorums: st.Quorums, Tolerance: st.Tolerance, Settings: st.Settings, Order: st.Order, Next: viewSlot(st.Next),
	}
	if st.Order == braid.OrderNiagara {
		v.Begun = st.Begun
	}
	for _, a := range s.store.Alarms() {
		v.Alarms = append(v.Alarms, a.Alarm.String()+" of "+braid.MemberID(a.MemberID).String())
	}
	for i := range st.Instances {
		v.Instances = append(v.Instances, viewInstance(&st, i))
	}
	v.Voters = viewVoters(&st)
	for i := range st.Members {
		v.Members = append(v.Members, viewMember(&st, &st.Members[i], self.leader))
	}
	slices.SortFunc(v.Members, func(a, b memberView) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return v
}

func viewInstance(st *braid.Status, i int) instanceView {
	in := &st.Instances[i]
	v := instanceView{
		Instance: uint64(in.Instance), Role: in.Role.String(), Leader: name(in.Leader), Term: uint64(in.Term),
		First: uint64(in.First), Last: uint64(in.Last), Durable: uint64(in.Durable), Commit: uint64(in.Commit),
		K: in.K, Preparing: in.Preparing, Lacking: in.Lacking, Restriping: in.Restriping, Lanes: viewLanes(in.Lanes),
		Epoch: viewEpoch(in.Epoch),
	}
	for j := range in.Peers {
		p := &in.Peers[j]
		match, last := uint64(p.Match), uint64(in.Last)
		v.Peers = append(v.Peers, peerView{
			ID: p.ID.String(), Active: p.Active, Match: match, Lag: last - min(match, last), InflightBytes: p.InflightBytes, Lacking: p.Lacking,
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
		v.Rounds = &roundsView{
			Applied: progress.AppliedRounds, Committed: progress.CommittedRounds, Appended: progress.AppendedRounds,
			Wanted: viewSlot(progress.Wanted), Skips: progress.Skips,
		}
	}
	return v
}

func viewBodies(st *braid.Status) bodiesView {
	b := &st.Bodies
	v := bodiesView{
		Held: b.Held, Missing: b.Missing, Short: b.Short, LiveBytes: b.LiveBytes, TotalBytes: b.TotalBytes,
		Fetched: b.Fetched, Served: b.Served, Corrupt: b.Corrupt, Repaired: b.Repaired, Trimmed: b.Trimmed,
	}
	if b.Failing != nil {
		v.Failing = b.Failing.Error()
	}
	return v
}

func viewMember(st *braid.Status, m *braid.Member, leader braid.MemberID) memberView {
	v := memberView{ID: m.ID.String(), Name: m.Name, Role: "follower", PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs}
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

// add takes in what the leader of one more instance knows.
func (v *memberView) add(p *peerView) {
	if v.Active == nil {
		known := *p
		v.Active, v.Match, v.Lag, v.InflightBytes, v.Lacking = &known.Active, &known.Match, &known.Lag, &known.InflightBytes, &known.Lacking
		return
	}
	*v.Active = *v.Active && p.Active
	if p.Lag > *v.Lag {
		*v.Match, *v.Lag = p.Match, p.Lag
	}
	*v.InflightBytes += p.InflightBytes
	*v.Lacking = *v.Lacking || p.Lacking
}

func (s *Server) serveStatusJSON(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, s.view(r.Context()))
}

func (s *Server) serveStatusPage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = statusPage.Execute(w, s.view(r.Context())) // the client's loss
}

var statusPage = template.Must(template.New("status").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<title>braid {{.Name}}</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em;color:#222}
table{border-collapse:collapse;width:100%;margin:1em 0}th,td{text-align:left;padding:.3em .7em;border-bottom:1px solid #ddd}
th{font-weight:600;color:#666}.bad{color:#b00020}.good{color:#0a7a30}code{font-size:13px}
@media(prefers-color-scheme:dark){body{background:#161616;color:#ddd}th,td{border-color:#333}th{color:#999}}
</style></head><body>
<h1>braid {{.Name}}</h1>
<p>Member <code>{{.ID}}</code> of cluster <code>{{.Cluster}}</code>:
{{if not .Ready}}<b class="bad">not ready</b>{{else if .Lonely}}<b class="bad">ready for the moment</b>{{else}}<b class="good">ready</b>{{end}},
{{with .Voters}}{{if lt .Reached .All}}<b{{if .Few}} class="bad"{{end}}>reaches {{.Reached}} of {{.All}} voters</b>,{{end}}{{end}}
{{if .IsLeader}}leads{{else if .Leader}}follows <code>{{.Leader}}</code>{{else}}<b class="bad">no leader</b>{{end}}
in term {{.Term}}, at revision {{.Revision}}, position {{.Applied}}{{with .Next}}, next is round {{.Round}} of instance {{.Instance}}{{end}}.
Log {{.LogBytes}} bytes, database {{.DBInUse}} of {{.DBBytes}} bytes, {{.PendingBytes}} bytes pending.</p>
<p>Order {{.Order}}, protocol {{.Protocol}}{{with .Settings.String}}, {{.}}{{end}}, placement {{.Placement}}{{with .Cut}}, new values in {{.}} fragments{{end}}{{range .Instances}}{{if .Preparing}},
<b class="bad">prepares to lead: {{.Preparing}} large values to be made whole</b>{{end}}{{if .Restriping}},
<b class="bad">members may leave when {{.Restriping}} more hold large values whole</b>{{end}}{{end}}.
{{with .Bodies}}Large values: {{.Held}} held with {{.LiveBytes}} bytes, <span{{if .Missing}} class="bad"{{end}}>{{.Missing}} missing</span>,{{if .Short}}
{{.Short}} to be made whole,{{end}}
{{.Fetched}} made whole with fragments of others, {{.Corrupt}} found damaged, {{.Repaired}} repaired.</p>
{{if .Failing}}<p class="bad">{{.Failing}}</p>{{end}}{{end}}
{{with .Disk}}{{if .Damaged}}<p>Log and snapshots: {{.Damaged}} places found damaged on disk, {{.Mended}} of which do not matter any more.</p>{{end}}
{{if .Failing}}<p class="bad">{{.Failing}}</p>{{end}}{{end}}
{{with .Tolerance}}<p>{{.}}</p>{{end}}
{{range .Alarms}}<p class="bad">Alarm {{.}}</p>{{end}}
<table><tr><th>member</th><th>id</th><th>role</th><th>clients</th><th>peers</th><th>link</th><th>lag</th></tr>
{{range .Members}}<tr><td>{{.Name}}</td><td><code>{{.ID}}</code></td><td>{{.Role}}</td>
<td>{{range .ClientURLs}}{{.}} {{end}}</td><td>{{range .PeerURLs}}{{.}} {{end}}</td>
<td>{{with .Link}}{{if .Moved}}at {{range .Addrs}}{{.}} {{end}}{{end}}{{if .Up}}up for {{.For}}{{else}}<b class="bad">down for {{.For}}</b>{{with .Error}}: {{.}}{{end}}{{end}}{{end}}</td>
<td>{{if .Lag}}{{.Lag}}{{end}}{{if .Silent}} <span class="bad">silent</span>{{end}}{{if .Lacks}} <span class="bad">lacks large values</span>{{end}}</td></tr>{{end}}</table>
<table><tr><th>instance</th><th>role</th><th>leader</th><th>term</th><th>first</th><th>last</th><th>durable</th><th>committed</th><th>applied</th>
{{if .Next}}<th>rounds applied</th><th>committed</th><th>appended</th><th>wants</th><th>skips</th>{{end}}</tr>
{{range .Instances}}<tr><td>{{.Instance}}</td><td>{{.Role}}</td><td>{{if .Leader}}<code>{{.Leader}}</code>{{else}}<b class="bad">none</b>{{end}}</td>
<td>{{.Term}}</td><td>{{.First}}</td><td>{{.Last}}</td><td>{{.Durable}}</td><td>{{.Commit}}</td><td>{{.Applied}}</td>
{{with .Rounds}}<td>{{.Applied}}</td><td>{{.Committed}}</td><td>{{.Appended}}</td><td>{{with .Wanted}}{{.Round}} of {{.Instance}}{{end}}</td>
<td>{{.Skips}}</td>{{end}}</tr>{{end}}</table>
{{range .Instances}}{{with .Lanes}}<p>Generation {{.Generation}} of lanes: {{if not .Accepting}}<b class="bad">nothing
can be accepted</b>{{else if $.Lonely}}<b class="bad">commands can be accepted once a majority is there</b>{{else}}<b class="good">commands can be accepted</b>{{end}}{{if .Fence}}, <b class="bad">a change of members waits for the fence</b>{{end}}{{if not .Open}}, <b>this member's lane is not open</b>{{end}}.
{{.SentBytes}} bytes went by lanes from here and {{.ReceivedBytes}} came, signals spared {{.SparedBytes}}, {{.WholeGroups}} groups with {{.WholeBytes}} bytes
were sent whole, {{.Missed}} were asked for, {{.Refused}} proposals were refused.</p>
<table><tr><th>lane of</th><th>life</th><th>confirmed</th><th>durable</th><th>held</th><th>bytes of {{.WindowBytes}}</th></tr>
{{range .Lanes}}<tr><td><code>{{.Member}}</code>{{if .Own}} (own){{end}}</td><td>{{.Life}}</td><td>{{.Confirmed}}</td><td>{{.Durable}}</td><td>{{.Held}}</td><td>{{.HeldBytes}}</td></tr>
{{end}}</table>{{end}}{{end}}
{{range .Instances}}{{with .Epoch}}<p>Epoch {{.Number}}: slots {{.First}} to {{.Last}}, {{len .Segments}} members lead{{if .Banned}}; banned: {{$until := .Until}}{{range $i, $m := .Banned}}
<code class="bad">{{$m}}</code>{{if index $until $i}} until epoch {{index $until $i}}{{end}}{{end}}{{end}}{{if .Unsettled}}, <b class="bad">a change of members waits for the next epoch</b>{{end}}.
{{.Slots}} slots came into the log, {{.Skipped}} of them without a value.</p>
<table><tr><th>segment of</th><th>decided</th><th>last</th><th>slots</th><th>without a value</th><th>ballot</th></tr>
{{range .Segments}}<tr><td><code>{{.Leader}}</code></td><td>{{.Decided}}</td><td>{{.Last}}</td><td>{{.Slots}}</td><td>{{.Skipped}}</td>
<td>{{if .Ballot}}<b class="bad">{{.Ballot}}</b> of {{if .By}}<code>{{.By}}</code>{{else}}a member that is gone{{end}}{{end}}</td></tr>
{{end}}</table>{{end}}{{end}}
<p><a href="/braid/status">as JSON</a> · <a href="/metrics">metrics</a> · <a href="/readyz?verbose">checks</a></p>
</body></html>
`))
