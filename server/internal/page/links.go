package page

import (
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid"
)

// Link is the state of this member's link to another one: whether it can send there, and since when. It does not show
// what the other one can do.
type Link struct {
	Up    bool      `json:"up"`
	Since time.Time `json:"since"`
	Error string    `json:"error,omitempty"` // the last one; of a link that is up an old one
	Addrs []string  `json:"addrs,omitempty"` // where the member is dialed
	// Moved: these are not the addresses of the membership.
	Moved bool `json:"moved,omitempty"`
	// RoundTrip is the shortest of the last round trips; 0: none is known, as where the setting fit is off.
	RoundTrip float64 `json:"round_trip_ms,omitempty"`
	// Bytes exchanged with the member since this one started.
	SentBytes     int64 `json:"sent_bytes"`
	ReceivedBytes int64 `json:"received_bytes"`
}

// viewLink is the link to a member; nil: there is none.
func viewLink(st *braid.Status, id braid.MemberID) *Link {
	for i := range st.Links.Peers {
		if p := &st.Links.Peers[i]; p.ID == id {
			return &Link{
				Up: p.Connected, Since: p.Since.UTC().Truncate(time.Millisecond), Error: p.LastError,
				Addrs: p.Addrs, Moved: moved(st, id, p.Addrs), RoundTrip: float64(p.RoundTrip.Microseconds()) / 1000,
				SentBytes: p.BytesOut, ReceivedBytes: p.BytesIn,
			}
		}
	}
	return nil
}

// moved reports whether a member is dialed at an address that the membership does not list.
func moved(st *braid.Status, id braid.MemberID, addrs []string) bool {
	i := slices.IndexFunc(st.Members, func(m braid.Member) bool { return m.ID == id })
	return i >= 0 && slices.ContainsFunc(addrs, func(addr string) bool {
		return !slices.ContainsFunc(st.Members[i].PeerURLs, func(url string) bool {
			return url == addr || strings.TrimSuffix(url[strings.Index(url, "//")+1:], "/") == "/"+addr
		})
	})
}

// Voters is how many voters there are, and to how many of them this member has a link. It counts itself.
type Voters struct {
	All     int `json:"all"`
	Reached int `json:"reached"`
}

func viewVoters(st *braid.Status) (v Voters) {
	for i := range st.Members {
		m := &st.Members[i]
		if m.Learner {
			continue
		}
		v.All++
		if link := viewLink(st, m.ID); m.ID == st.Self || link == nil || link.Up {
			v.Reached++
		}
	}
	return v
}
