package member

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// LineageError says that two logs are not one, although they are of clusters with one id. Nothing of the other log was
// taken. A retry does not help: one of the members is to be removed, and to be added with an empty directory.
type LineageError struct {
	// Member is whose log has the other lineage; 0: this member's own log or snapshot does, so that this member stops.
	Member protocol.MemberID
	// Known is the lineage that this member knew, Is the other one.
	Known, Is uint64
}

func (e *LineageError) Error() string {
	whose := "member " + e.Member.String() + " has a log"
	if e.Member == 0 {
		whose = "the log or a snapshot is"
	}
	return fmt.Sprintf("braid: %s of lineage %016x, and this member is of lineage %016x: they were founded apart, and "+
		"nothing joins two logs", whose, e.Is, e.Known)
}

// CheckLineage returns a [*LineageError] if two memberships are of two logs.
func CheckLineage(known, is *protocol.Config) error {
	if known.Lineage == 0 || is.Lineage == 0 || known.Lineage == is.Lineage {
		return nil
	}
	return &LineageError{Known: known.Lineage, Is: is.Lineage}
}
