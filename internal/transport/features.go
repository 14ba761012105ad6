package transport

// features are what a member's version knows, as its flags in a hello or a reply show. Earlier versions ignore them.
type features struct {
	tunes bool // profiles
	seals bool // seals of the log
}

const (
	flagTunes = 16
	flagSeals = 32
)

// ownFeatures are those of this version.
var ownFeatures = features{tunes: true, seals: true}

func featuresOf(flags byte) features {
	return features{tunes: flags&flagTunes != 0, seals: flags&flagSeals != 0}
}
