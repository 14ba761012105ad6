package replica

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/protocol"
)

// joinerQuestion is what a joiner asks: who is it, and who are the others?
type joinerQuestion struct {
	// PeerURLs are those under which it was added. Whoever cannot name those of a member gets no answer.
	PeerURLs []string `json:"peer_urls"`
}

// Running is what a member tells a joiner of its cluster, as it was applied there.
type Running struct {
	Cluster uint64            `json:"cluster"`
	Self    protocol.MemberID `json:"self"` // the joiner
	Members []protocol.Member `json:"members"`
	// Begun is with how many instances the cluster began, if they are merged; else 0.
	Begun int `json:"begun"`
	// Kind is the kind of the log, if it has a profile: then the joiner uses that, whatever protocol of the same core
	// its flags name. Zero: the log has none, or an earlier version answered.
	Kind member.LogKind `json:"log_kind,omitzero"`
	// Sealed: the log had a seal, and Kind is what it has been since. The flags may name any protocol.
	Sealed bool `json:"sealed,omitempty"`
	// Position and Index are how far the member that answered had applied, and the first instance's log there. Of
	// several answers the last one by these holds: see [Running.Before].
	Position protocol.Position `json:"position,omitempty"`
	Index    protocol.Index    `json:"index,omitempty"`
}

// Before reports whether another answer tells of a later membership, or may. A member that lags may tell of one that
// was removed since, with the joiner's URLs.
func (a *Running) Before(b *Running) bool {
	return a.Position < b.Position || a.Position == b.Position && a.Index < b.Index
}

// answerJoiner answers a joiner; nil: it is no member.
func (r *Replica) answerJoiner(question []byte) []byte {
	var q joinerQuestion
	if json.Unmarshal(question, &q) != nil || len(q.PeerURLs) == 0 {
		return nil
	}
	at, configs := r.apply.at()
	c := configs[0]
	i := slices.IndexFunc(c.Members, func(m protocol.Member) bool { return sameURLs(m.PeerURLs, q.PeerURLs) })
	if i < 0 {
		return nil
	}
	a := Running{Cluster: r.opt.Cluster, Self: c.Members[i].ID, Members: c.Members, Position: at.Position,
		Index: at.Points[0].Index}
	if r.opt.Begin.Merged() {
		a.Begun = len(r.opt.Begin.Points)
	}
	switch {
	case c.Profile.Sealed():
		a.Kind, a.Begun, a.Sealed = member.KindBehind(&c.Profile), 0, true
		if a.Kind.Order == order.KindNiagara {
			a.Begun = len(at.Points)
		}
	case c.Profile.Version > 0:
		a.Kind = r.opt.Kind
	}
	b, err := json.Marshal(&a)
	if err != nil {
		r.log.Error("a new member cannot be told who the members are", "err", err)
		return nil
	}
	return b
}

// sameURLs compares lists of URLs without regard to their order.
func sameURLs(a, b []string) bool {
	normal := func(urls []string) []string {
		out := make([]string, len(urls))
		for i, u := range urls {
			out[i] = strings.TrimSuffix(u, "/")
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(normal(a), normal(b))
}

// ErrNotAdded says that a member which was asked knows no one with the joiner's peer URLs: they were not added, or it
// has not heard of it yet. Nothing happened, and a retry is safe.
var ErrNotAdded = errors.New("the member that was asked knows no member with these peer URLs")

// FindRunning asks the member that listens at a URL for its cluster, as the member with these peer URLs
// that is to join it. Dial and config are as in [Options]. The error is [ErrNotAdded], or says why there is no answer.
func FindRunning(
	ctx context.Context, url string, dial transport.Dial, config *tls.Config, peerURLs []string,
) (*Running, error) {
	if config == nil && strings.HasPrefix(url, "https://") {
		return nil, fmt.Errorf("%s is not asked in clear text: give the certificate for members", url)
	}
	question, err := json.Marshal(&joinerQuestion{peerURLs})
	if err != nil {
		return nil, err
	}
	answer, err := transport.Ask(ctx, addresses([]string{url}, false)[0], dial, config, question)
	if errors.Is(err, transport.ErrNoAnswer) {
		return nil, fmt.Errorf("%s: %w", url, ErrNotAdded)
	}
	if err != nil {
		return nil, err
	}
	found := new(Running)
	if err := json.Unmarshal(answer, found); err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", url, err)
	}
	if found.Cluster == 0 ||
		!slices.ContainsFunc(found.Members, func(m protocol.Member) bool { return m.ID == found.Self }) {
		return nil, fmt.Errorf("the answer of %s does not include the member that asked", url)
	}
	return found, nil
}
