package replica

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/protocol"
)

// checkEarly compares what this member has learned of its log with the members that it met before.
func (a *acquaintances) checkEarly() {
	a.mu.Lock()
	own, ids := a.handshakes.Origin(), a.handshakes.Unchecked()
	a.mu.Unlock()
	for _, id := range ids {
		a.r.spawn(func(ctx context.Context) { a.checkOrigin(ctx, id, own) })
	}
}

// checkOrigin compares origins with a member that may have a link. If they differ, or if no answer comes, the link
// ends. It is made again if the handshake, which compares them too, allows it. A member of an earlier version does not
// know the question.
func (a *acquaintances) checkOrigin(ctx context.Context, id protocol.MemberID, own cluster.Origin) {
	ctx, cancel := context.WithTimeout(ctx, a.r.tuning().GiveUp)
	defer cancel()
	theirs, err := a.askForOrigin(ctx, id, own)
	if err == nil {
		err = a.compare(id, theirs)
	}
	if remote := (*transport.RemoteError)(nil); err == nil || errors.As(err, &remote) || a.r.ctx.Err() != nil {
		return
	}
	a.r.log.Warn("the link with a member ends: nobody knows whether it has this log", "member", id, "err", err)
	a.r.unlink(id)
}

func (a *acquaintances) askForOrigin(ctx context.Context, id protocol.MemberID,
	own cluster.Origin) (theirs cluster.Origin, err error) {
	request, err := json.Marshal(own)
	if err != nil {
		return theirs, err
	}
	a.r.pmu.Lock() // there are no links before connect ends
	links := a.r.links
	a.r.pmu.Unlock()
	answer, err := links.Request(ctx, uint64(id), append([]byte{askOrigin}, request...))
	if err != nil {
		return theirs, err
	}
	return theirs, json.Unmarshal(answer, &theirs)
}

// answerOrigin answers a member that compares origins. If they differ, the link ends.
func (a *acquaintances) answerOrigin(from protocol.MemberID, body []byte) ([]byte, error) {
	var theirs cluster.Origin
	if err := json.Unmarshal(body, &theirs); err != nil {
		return nil, err
	}
	a.mu.Lock()
	own := a.handshakes.Origin()
	a.mu.Unlock()
	if err := a.compare(from, theirs); err != nil {
		a.r.log.Warn("the link with a member ends: its log is another one", "member", from, "err", err)
		a.r.spawn(func(context.Context) { a.r.unlink(from) }) // the answer leaves before, perhaps
	}
	return json.Marshal(own)
}

func (a *acquaintances) compare(id protocol.MemberID, theirs cluster.Origin) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handshakes.Compare(id, theirs)
}

func (r *Replica) unlink(id protocol.MemberID) {
	r.pmu.Lock()
	links := r.links
	r.pmu.Unlock()
	links.Drop(uint64(id))
}
