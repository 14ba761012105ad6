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
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server/internal/history"
)

const (
	// gatherEvery is how often the members are asked while there are watchers of the cluster.
	gatherEvery = 950 * time.Millisecond
	// gatherWait is how long an answer waits for those of the members that are asked for it.
	gatherWait = 500 * time.Millisecond
	// gatherTimeout is how long a member may take to answer.
	gatherTimeout = 1200 * time.Millisecond
	// gatherKept is how long what members told is kept after the last question of a watcher.
	gatherKept = 10 * time.Second
)

// told is what a member tells about itself.
type told struct {
	Part   history.Part    `json:"part"`
	Status json.RawMessage `json:"status"`
}

// gatherer gathers what the members of the cluster tell about themselves, for those who watch it. Watchers share what
// was gathered, and without watchers no member is asked. It is safe for concurrent use.
type gatherer struct {
	id       braid.MemberID
	log      Log
	asker    *asker
	own      func(history.Position) (told, error)
	cluster  string
	stopping <-chan struct{}

	mu      sync.Mutex
	members map[braid.MemberID]*watched
	began   time.Time     // the last round of questions
	ended   chan struct{} // closed when all have answered those, or not in time
	open    int           // answers of that round that are missing
	answers map[string][]byte
	forget  *time.Timer
}

// watched is what is known of a member.
type watched struct {
	history *history.History
	status  json.RawMessage
	reached bool
	err     string
	asking  bool
}

func newGatherer(s *Server) *gatherer {
	return &gatherer{
		id: s.id, log: s.log, asker: s.asker, own: s.tell, cluster: braid.MemberID(s.cfg.Node.Cluster).String(),
		stopping: s.stopping, members: map[braid.MemberID]*watched{}, answers: map[string][]byte{},
	}
}

// serve answers with what came after the cursor that the client was given before.
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

// ask asks all members, unless that was done just now. The channel is closed when they have answered.
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
	if g.open > 0 { // watchers wait still
		close(g.ended)
	}
	g.began, g.ended, g.open = time.Now(), make(chan struct{}), 0
	g.adjust()
	clear(g.answers)
	for id, m := range g.members {
		if !m.asking {
			m.asking, g.open = true, g.open+1
			go g.askOne(id, m, m.history.At(), g.ended)
		}
	}
	if g.open == 0 {
		close(g.ended)
	}
	return g.ended
}

// drop forgets what members told.
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
			g.members[id] = &watched{history: history.New(""), err: "not asked yet"}
		}
	}
}

// askOne asks a member, and notes what it tells.
func (g *gatherer) askOne(id braid.MemberID, m *watched, at history.Position, round chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), gatherTimeout)
	defer cancel()
	t, err := g.tells(ctx, id, at)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s", gatherTimeout)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m.asking = false
	clear(g.answers)
	m.note(&t, err)
	if g.ended == round {
		if g.open--; g.open == 0 {
			close(g.ended)
		}
	}
}

func (m *watched) note(t *told, err error) {
	switch {
	case err == nil:
		m.reached, m.err, m.status = true, "", t.Status
		m.history.Take(&t.Part)
	case status.Code(err) == codes.Unimplemented:
		m.reached, m.err, m.status = true, "its version does not tell what it does", nil
	default:
		m.reached, m.err = false, strings.TrimPrefix(status.Convert(err).Message(), "etcdserver: ")
	}
}

// tells is what a member tells of what came after a position.
func (g *gatherer) tells(ctx context.Context, id braid.MemberID, at history.Position) (told, error) {
	if id == g.id {
		return g.own(at)
	}
	position, err := json.Marshal(at)
	if err != nil {
		return told{}, err
	}
	question, err := encodeAsk(askTold, nil, wrapperspb.Bytes(position))
	if err != nil {
		return told{}, err
	}
	reply, err := g.asker.member(ctx, id, question)
	if err != nil {
		return told{}, err
	}
	var t told
	if err := json.Unmarshal(reply, &t); err != nil {
		return told{}, fmt.Errorf("its answer cannot be read: %w", err)
	}
	return t, nil
}

// onCluster is the answer to a watcher.
type onCluster struct {
	Cluster string     `json:"cluster"`
	Self    string     `json:"self"`
	At      int64      `json:"at"`
	Cursor  string     `json:"cursor"`
	Members []onMember `json:"members"`
}

type onMember struct {
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

// answer is what came after a cursor. Watchers with the same cursor share it.
func (g *gatherer) answer(cursor string) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if body, ok := g.answers[cursor]; ok {
		return body, nil
	}
	from, next := readCursor(cursor), map[string]history.Position{}
	all := onCluster{Cluster: g.cluster, Self: g.id.String(), At: time.Now().UnixMilli(), Members: []onMember{}}
	members := g.log.Status().Members
	slices.SortFunc(members, func(a, b braid.Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for _, m := range members {
		w := g.members[m.ID]
		if w == nil {
			continue // it has come just now
		}
		id := m.ID.String()
		part := w.history.Since(from[id])
		next[id] = part.Next
		all.Members = append(all.Members, onMember{
			ID: id, Name: m.Name, Reached: w.reached, Error: w.err, Boot: part.Next.Boot, Reset: part.Reset,
			Status: w.status, Samples: part.Merged(), Events: append([]history.Event{}, part.Events...),
		})
	}
	all.Cursor = writeCursor(next)
	body, err := json.Marshal(&all)
	if err == nil {
		g.answers[cursor] = body
	}
	return body, err
}

// readCursor is how far a watcher knows the members: not at all, if the cursor cannot be read.
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
