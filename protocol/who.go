package protocol

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// LogID is the random identity of a data directory's log. A member with another identity has another log, whatever
// its id (docs/internals/identity.md). The zero value is no identity.
type LogID [16]byte

// NewLogID makes an identity from random bytes.
func NewLogID(chance func() uint64) (id LogID) {
	for id.IsZero() {
		binary.BigEndian.PutUint64(id[:], chance())
		binary.BigEndian.PutUint64(id[8:], chance())
	}
	return id
}

// IsZero reports whether there is no identity. encoding/json calls it.
func (id LogID) IsZero() bool { return id == LogID{} }

// String writes the identity in hexadecimal.
func (id LogID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText implements encoding.TextMarshaler.
func (id LogID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *LogID) UnmarshalText(b []byte) error {
	if hex.DecodedLen(len(b)) != len(id) {
		return &CorruptError{What: "log identity", Detail: fmt.Sprintf("%q", b)}
	}
	_, err := hex.Decode(id[:], b)
	return err
}

// Who identifies a member to others: the identity of its log, and the incarnation of that log. Incarnations are
// numbered from 1. An incarnation's Mark is random: two processes that started from copies of one directory have the
// same number and different marks. The zero value is no member.
type Who struct {
	Log         LogID  `json:"log,omitzero"`
	Incarnation uint64 `json:"life,omitempty"`
	Mark        uint64 `json:"mark,omitempty"`
}

func (w Who) String() string {
	if w.Incarnation == 0 {
		return fmt.Sprintf("log %.8s", w.Log)
	}
	return fmt.Sprintf("life %d of log %.8s", w.Incarnation, w.Log)
}

// NewSession names the incarnation of a log as an origin of proposals. With shared all instances share the session's
// numbers.
func NewSession(self MemberID, log LogID, life uint64, shared bool) Session {
	number := life & (sharedNumbers - 1)
	if shared {
		number |= sharedNumbers
	}
	return Session{Member: self, Incarnation: uint64(binary.BigEndian.Uint32(log[:]))<<32 | number}
}

// sharedNumbers marks, in an incarnation, a session whose numbers all instances share. Earlier programs had no mark:
// there each instance had numbers of its own. Their sessions keep that meaning forever.
const sharedNumbers = 1 << 31

// Shared reports whether all instances share the session's numbers. If not, each instance has
// numbers of its own. It is the same if there is only one instance.
func (s Session) Shared() bool { return s.Incarnation&sharedNumbers != 0 }

// String writes the member and the number of its incarnation.
func (s Session) String() string { return fmt.Sprintf("%s.%d", s.Member, s.Number()) }

// Number is the number of the incarnation, for people.
func (s Session) Number() uint32 { return uint32(s.Incarnation) &^ sharedNumbers }

// Line identifies the log of a session. Sessions of different lines are independent: neither is an earlier
// incarnation of the other.
func (s Session) Line() uint32 { return uint32(s.Incarnation >> 32) }

// Rank orders the sessions of a line: a later incarnation of the log has a higher rank. All incarnations that share
// their numbers are later than those that do not.
func (s Session) Rank() uint32 { return uint32(s.Incarnation) }
