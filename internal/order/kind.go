package order

// Kind is a way to merge instances into one log.
type Kind string

// The kinds of orders.
const (
	KindSingle  Kind = "single"  // one instance, whose log is the global log
	KindNiagara Kind = "niagara" // several instances, which take turns (docs/internals/niagara.md)
	KindKeyed   Kind = "keyed"   // several instances, each with the commands of some keys; no global log
)
