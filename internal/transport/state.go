package transport

import (
	"fmt"
	"strconv"
)

// The commands of a member's program may have versions: a program that does not know a command would have another state
// after it. So a member that applied such a command sends the version when it connects, and there is no link with a
// member that does not know the version. Members of earlier versions refuse the link too, because they receive a
// setting that they do not have.

// stateSetting is the name under which Told.StateNeeded is sent, if it is not 0; it is no setting.
const stateSetting = "state"

// stateOf separates the needed version of the state from the text of another member's settings.
func stateOf(text string) (settings string, needed uint8) {
	settings, value := separate(text, stateSetting)
	if value == "" {
		return settings, 0
	}
	n, err := strconv.ParseUint(value, 10, 8)
	if err != nil {
		return settings, maxState + 1 // no version knows it
	}
	return settings, uint8(n)
}

// stateDiffers returns the reason why one of two members cannot follow the other's state, by the versions that the
// other one needs and knows; "": both can.
func (t *Told) stateDiffers(needed, known uint8) string {
	switch {
	case needed > t.StateKnown:
		return fmt.Sprintf("%s is of version %d there, which is not known here", stateSetting, needed)
	case t.StateNeeded > known:
		return fmt.Sprintf("%s is of version %d here, which is not known there", stateSetting, t.StateNeeded)
	}
	return ""
}
