package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server/internal/history"
)

const (
	// gatherEvery is the least time between two rounds of questions.
	gatherEvery = 950 * time.Millisecond
	// gatherWait is how long a request waits for the reports of the round.
	gatherWait = 500 * time.Millisecond
	// gatherTimeout is how long a member may take to report.
	gatherTimeout = 1200 * time.Millisecond
	// gatherKept is how long reports are kept after the last request.
	gatherKept = 10 * time.Second
	// answersKept bounds the answers that clients with the same cursor share.
	answersKept = 64
)

// gatherer gathers the reports of all members for /braid/cluster. Clients share the reports, and no member is asked
// while there are no clients. It is safe for concurrent use.
type gatherer struct {
	id      braid.MemberID
	log     Log
	asker   *asker
	cluster string

	mu      sync.Mutex
	members map[braid.MemberID]*reported
	began   time.Time     // the start of the last round of questions
	ended   chan struct{} // closed when no report of that round is missing, or the next round begins
	open    int           // missing reports of that round
	answers map[string][]byte
	forget  *time.Timer
}

// reported is the copy of a member's reports.
type reported struct {
	history *history.History
	status  json.RawMessage
	reached bool
	err     string
	asking  bool
}

func newGatherer(s *Server) *gatherer {
	return &gatherer{
		id: s.id, log: s.log, asker: s.asker, cluster: braid.MemberID(s.cfg.Node.Cluster).String(),
		members: map[braid.MemberID]*reported{}, answers: map[string][]byte{},
	}
}

// serve answers with the reports after the cursor of the client's last answer.
func (g *gatherer) serve(w http.ResponseWriter, r *http.Request) {
	ended := g.ask()
	wait := time.NewTimer(gatherWait)
	defer wait.Stop()
	select {
	case <-ended:
	case <-wait.C:
	case <-r.Context().Done():
		return
	}
	body, err := g.answer(r.URL.Query().Get("cursor"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // an error is the client's
}

// ask asks all members, unless the last round began less than gatherEvery ago. The channel is closed when the round
// has ended.
func (g *gatherer) ask() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.forget == nil {
		g.forget = time.AfterFunc(gatherKept, g.drop)
	}
	g.forget.Reset(gatherKept)
	if time.Since(g.began) < gatherEvery {
		return g.ended
	}
	if g.open > 0 { // clients still wait for the last round
		close(g.ended)
	}
	g.began, g.ended, g.open = time.Now(), make(chan struct{}), 0
	g.adjust()
	clear(g.answers)
	for id, m := range g.members {
		if !m.asking {
			m.asking, g.open = true, g.open+1
			go g.askOne(id, m, m.history.End(), g.ended)
		}
	}
	if g.open == 0 {
		close(g.ended)
	}
	return g.ended
}

// drop drops all reports.
func (g *gatherer) drop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.members)
	clear(g.answers)
	g.began = time.Time{}
}

// adjust makes the members those of the membership. g.mu is held.
func (g *gatherer) adjust() {
	known := map[braid.MemberID]bool{g.id: true}
	for _, m := range g.log.Status().Members {
		known[m.ID] = true
	}
	for id := range g.members {
		if !known[id] {
			delete(g.members, id)
		}
	}
	for id := range known {
		if g.members[id] == nil {
			g.members[id] = &reported{history: history.New(""), err: "not asked yet"}
		}
	}
}

// askOne asks a member, and notes its report after a position.
func (g *gatherer) askOne(id braid.MemberID, m *reported, after history.Position, round chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), gatherTimeout)
	defer cancel()
	r, err := g.report(ctx, id, after)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s", gatherTimeout)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m.asking = false
	clear(g.answers)
	m.note(&r, err)
	if g.ended == round {
		if g.open--; g.open == 0 {
			close(g.ended)
		}
	}
}

// note adds a report, or why there is none.
func (m *reported) note(r *report, err error) {
	switch {
	case err == nil:
		m.reached, m.err, m.status = true, "", r.Status
		m.history.Extend(&r.Part)
	case status.Code(err) == codes.Unimplemented:
		m.reached, m.err, m.status = true, "its version keeps no history", nil
	default:
		m.reached, m.err = false, strings.TrimPrefix(status.Convert(err).Message(), "etcdserver: ")
	}
}

// report asks a member for its report after a position.
func (g *gatherer) report(ctx context.Context, id braid.MemberID, after history.Position) (r report, err error) {
	position, err := json.Marshal(after)
	if err != nil {
		return r, err
	}
	question, err := encodeAsk(askReport, nil, wrapperspb.Bytes(position))
	if err != nil {
		return r, err
	}
	reply, err := g.asker.member(ctx, id, question)
	if err != nil {
		return r, err
	}
	text := new(wrapperspb.BytesValue)
	if err = proto.Unmarshal(reply, text); err == nil {
		err = json.Unmarshal(text.GetValue(), &r)
	}
	if err != nil {
		return r, fmt.Errorf("its report cannot be read: %w", err)
	}
	return r, nil
}

// clusterAnswer is the answer of /braid/cluster.
type clusterAnswer struct {
	Cluster string         `json:"cluster"`
	Self    string         `json:"self"`
	At      int64          `json:"at"`
	Cursor  string         `json:"cursor"`
	Members []memberAnswer `json:"members"`
}

// memberAnswer is a member in it.
type memberAnswer struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Reached bool            `json:"reached"`
	Error   string          `json:"error"`
	Boot    string          `json:"boot"`
	Reset   bool            `json:"reset"`
	Status  json.RawMessage `json:"status"`
	Samples history.Samples `json:"samples"`
	Events  []history.Event `json:"events"`
}

// answer is the answer after a cursor. Clients with the same cursor share it.
func (g *gatherer) answer(cursor string) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if body, ok := g.answers[cursor]; ok {
		return body, nil
	}
	from, next := readCursor(cursor), map[string]history.Position{}
	all := clusterAnswer{Cluster: g.cluster, Self: g.id.String(), At: time.Now().UnixMilli(), Members: []memberAnswer{}}
	members := g.log.Status().Members
	slices.SortFunc(members, func(a, b braid.Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for _, m := range members {
		w := g.members[m.ID]
		if w == nil {
			continue // it was added after the last round began
		}
		id := m.ID.String()
		part := w.history.Since(from[id])
		next[id] = part.Next
		all.Members = append(all.Members, memberAnswer{
			ID: id, Name: m.Name, Reached: w.reached, Error: w.err, Boot: part.Next.Boot, Reset: part.Reset,
			Status: w.status, Samples: part.Merged(), Events: append([]history.Event{}, part.Events...),
		})
	}
	all.Cursor = writeCursor(next)
	body, err := json.Marshal(&all)
	if err == nil {
		if len(g.answers) >= answersKept {
			clear(g.answers)
		}
		g.answers[cursor] = body
	}
	return body, err
}

// readCursor reads the positions in the members' histories up to which a client has them: none, if it cannot be read.
func readCursor(cursor string) map[string]history.Position {
	var at map[string]history.Position
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(text, &at) != nil {
		return nil
	}
	return at
}

func writeCursor(at map[string]history.Position) string {
	text, _ := json.Marshal(at) // strings and numbers: cannot fail
	return base64.RawURLEncoding.EncodeToString(text)
}
