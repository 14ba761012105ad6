package page

import (
	"fmt"

	"github.com/braidlog/braid"
)

// Which requests of clients a member answers.
const (
	ServesAll   = "all"
	ServesReads = "reads" // and those that free space
	ServesNone  = "none"  // that need the others, or the state
)

// Alarms, as etcd names them.
const (
	noSpace = "NOSPACE"
	corrupt = "CORRUPT"
)

// Alarm is one that is raised for a member. Disk: it is for this member's disk, and not for its quota.
type Alarm struct {
	Name   string
	Member braid.MemberID
	Disk   bool
}

// Remedy is what to do about an alarm, in a sentence.
type Remedy struct {
	Alarm  string `json:"alarm"`
	Member string `json:"member"`
	Remedy string `json:"remedy"`
}

// addAlarms adds the alarms, and which requests are answered.
func (v *View) addAlarms(f *Facts) {
	v.Serving = ServesAll
	for i := range f.Alarms {
		a := &f.Alarms[i]
		id := a.Member.String()
		v.Alarms = append(v.Alarms, a.Name+" of "+id)
		who := memberName(&f.Log, a.Member)
		v.Remedies = append(v.Remedies, Remedy{a.Name, id, f.Remedy(a)})
		if a.Name == noSpace && v.Serving == ServesAll {
			v.Serving = ServesReads
			v.Why = fmt.Sprintf("the alarm NOSPACE is raised for %s: all members refuse puts", who)
		}
	}
	if f.NotReady != nil {
		v.Serving, v.Why = ServesNone, f.NotReady.Error()
	}
}

// Remedy is what to do about an alarm, in a sentence.
func (f *Facts) Remedy(a *Alarm) string {
	who := memberName(&f.Log, a.Member)
	switch {
	case a.Name == noSpace && a.Disk:
		return fmt.Sprintf("Free space on the disk of %s: the alarm then ends by itself.", who)
	case a.Name == noSpace && a.Member == f.ID:
		return fmt.Sprintf("The database of %s has reached its quota of %d bytes: delete keys, compact and "+
			"defragment, or restart with a larger --quota-backend-bytes; then `braid ctl alarm disarm`.",
			who, f.QuotaBytes)
	case a.Name == noSpace:
		return fmt.Sprintf(
			"The database of %s has reached its quota or its disk is full; its own status shows the cause.", who)
	case a.Name == corrupt:
		return fmt.Sprintf(
			"%s serves nothing and is repaired from the others; its log says whether it needs help.", who)
	}
	return "See `braid ctl alarm list`."
}

// memberName is the name of a member, or its id if it has none.
func memberName(st *braid.Status, id braid.MemberID) string {
	for i := range st.Members {
		if m := &st.Members[i]; m.ID == id && m.Name != "" {
			return m.Name
		}
	}
	return id.String()
}
