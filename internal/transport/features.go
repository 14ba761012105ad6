package transport

// features are what a member's version knows, as its flags in a hello or a reply show. Earlier versions ignore them.
type features struct {
	tunes bool // profiles
	seals bool // seals of the log
	// state is the newest version of the program's state that it can follow: see Told.StateKnown.
	state uint8
}

const (
	// flagTunes alone shows that profiles are known. Each version that knows seals knows them too, so with flagSeals it
	// shows that the version does not send its Format: see originFields.
	flagTunes = 16
	flagSeals = 32
	// The state's version is in the highest bits.
	stateShift, maxState = 6, 3
)

// ownFeatures are those of this version, with the newest version of the state that the program can follow.
func ownFeatures(state uint8) features {
	return features{tunes: true, seals: true, state: min(state, maxState)}
}

func featuresOf(flags byte) features {
	tunes, seals := flags&flagTunes != 0, flags&flagSeals != 0
	return features{tunes: tunes || seals, seals: seals, state: flags >> stateShift}
}

// flags are those of features. formats: the side sends its Format.
func (v features) flags(formats bool) (f byte) {
	if v.tunes && !(v.seals && formats) {
		f |= flagTunes
	}
	if v.seals {
		f |= flagSeals
	}
	return f | v.state<<stateShift
}
