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
func (r *Replica) checkEarly() {
	r.wmu.Lock()
	own, ids := r.handshakes.Origin(), r.handshakes.Unchecked()
	r.wmu.Unlock()
	for _, id := range ids {
		r.spawn(func(ctx context.Context) { r.checkOrigin(ctx, id, own) })
	}
}

// checkOrigin compares origins with a member that may have a link. If they differ, or if no answer comes, the link ends. It is
// made again if the handshake, which compares them too, allows it. A member of an earlier version does not know the question.
func (r *Replica) checkOrigin(ctx context.Context, id protocol.MemberID, own cluster.Origin) {
	ctx, cancel := context.WithTimeout(ctx, r.opt.GiveUp())
	defer cancel()
	theirs, err := r.askForOrigin(ctx, id, own)
	if err == nil {
		err = r.compare(id, theirs)
	}
	if remote := (*transport.RemoteError)(nil); err == nil || errors.As(err, &remote) || r.ctx.Err() != nil {
		return
	}
	r.log.Warn("the link with a member ends: nobody knows whether it has this log", "member", id, "err", err)
	r.unlink(id)
}

func (r *Replica) askForOrigin(ctx context.Context, id protocol.MemberID, own cluster.Origin) (theirs cluster.Origin, err error) {
	request, err := json.Marshal(own)
	if err != nil {
		return theirs, err
	}
	r.pmu.Lock() // there are no links before connect ends
	links := r.links
	r.pmu.Unlock()
	answer, err := links.Request(ctx, uint64(id), append([]byte{askOrigin}, request...))
	if err != nil {
		return theirs, err
	}
	return theirs, json.Unmarshal(answer, &theirs)
}

// answerOrigin answers a member that compares origins. If they differ, the link ends.
func (r *Replica) answerOrigin(from protocol.MemberID, body []byte) ([]byte, error) {
	var theirs cluster.Origin
	if err := json.Unmarshal(body, &theirs); err != nil {
		return nil, err
	}
	r.wmu.Lock()
	own := r.handshakes.Origin()
	r.wmu.Unlock()
	if err := r.compare(from, theirs); err != nil {
		r.log.Warn("the link with a member ends: its log is another one", "member", from, "err", err)
		r.spawn(func(context.Context) { r.unlink(from) }) // the answer leaves before, perhaps
	}
	return json.Marshal(own)
}

func (r *Replica) compare(id protocol.MemberID, theirs cluster.Origin) error {
	r.wmu.Lock()
	defer r.wmu.Unlock()
	return r.handshakes.Compare(id, theirs)
}

func (r *Replica) unlink(id protocol.MemberID) {
	r.pmu.Lock()
	links := r.links
	r.pmu.Unlock()
	links.Drop(uint64(id))
}
