package judge

import (
	"errors"
	"fmt"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/protocol"
)

// Said judges a message that leaves a member: its content must be durable. from is the sender's number. strange: its
// claims about bodies do not count.
func (c *Court) Said(m *protocol.Message, from uint64, strange bool) error {
	j, term := c.Of(m.Instance), uint64(m.Term)
	ledger, claims := j.Ledger, j.Core.Codec.ClaimsOf(m)
	var err error
	switch {
	case claims.Vote != 0:
		err = ledger.SendVote(from, term, uint64(claims.Vote))
	case claims.Stored != 0:
		err = ledger.SendStored(from, term, uint64(claims.Stored))
	case claims.Term:
		err = ledger.SendTerm(from, term)
	}
	if strange {
		return err
	}
	return errors.Join(err, c.saidHoldings(m, &claims))
}

// saidHoldings judges a member's claims about its bodies.
func (c *Court) saidHoldings(m *protocol.Message, claims *protocol.Claims) (err error) {
	bodies, ledger := c.Of(m.Instance).Bodies, c.Of(m.Instance).Ledger
	say := bodies.ReportHolds
	switch {
	case claims.Asked:
		say = bodies.AnswerHolds
	case !claims.Holds:
		return nil
	}
	from := uint64(m.From)
	for _, h := range m.Holdings {
		switch index, term := uint64(h.Index), uint64(h.Term); {
		case h.Form == protocol.FormCommitted && index > ledger.Decided():
			err = errors.Join(err, fmt.Errorf("says that %d is committed; decided are %d", index, ledger.Decided()))
		case h.Form == protocol.FormCommitted:
		case h.Form == protocol.FormNone && !ledger.Logged(from, index, term):
			// The body belongs to the state, which may be ahead of the log. The member never acknowledged the entry, so no
			// decision depends on this copy.
		default:
			err = errors.Join(err, say(from, uint64(m.Term), index, term, check.Form(h.Form)))
		}
	}
	return err
}
