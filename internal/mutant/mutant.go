package mutant

import "github.com/braidlog/braid/protocol/setting"

// Name names a mutant; "" breaks nothing. A type that has a rule to break has a field of this type. A name that it does
// not know breaks nothing there, so one name is handed to all types.
type Name string

// Info describes a mutant.
type Info struct {
	Name  Name
	Where string // the type with the rule; "": the core of the protocol that lists it
	Does  string // how the mutant behaves
	In    Cluster
}

// Cluster says where the simulator searches for a mutant, and for how long. The zero value of a field means the usual
// cluster: three members of the protocol whose core lists the mutant, or else of raft, with that protocol's settings.
type Cluster struct {
	Protocol  string
	Placement string
	Nodes     int
	Instances int // 0: the protocol's default
	Settings  setting.Values
	Seeds     uint64 // how many seeds a search may take; 0: as many as for others
}
