package protocol

// Fit says what is done when another profile would fit the load better.
type Fit string

const (
	// FitOff: nothing is measured for it.
	FitOff Fit = "off"
	// FitAdvise: the leader says which change would gain how much.
	FitAdvise Fit = "advise"
	// FitOn: the leader makes the change, measures, and takes it back if it did not gain enough.
	FitOn Fit = "on"
)
