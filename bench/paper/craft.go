package paper

import (
	"fmt"
)

// The experiments of "CRaft: An Erasure-coding-supported Version of Raft for Reducing Storage Cost and Network Cost"
// (Wang et al., FAST '20), section 5.
//
// The paper's setup: a key-value store in C++ on virtual machines of a cloud, two cores and about 550 Mbit/s each,
// five or seven of them and one for the clients; k is 3. The text does not have the values of the figures, only
// statements about them: those are the claims.

const craftPaper = "CRaft: An Erasure-coding-supported Version of Raft (FAST '20)"

// craftLink is a network card of the paper's machines.
const craftLink = "egress=550mbit"

// The contestants differ only in the form in which members keep a body.
const (
	seriesRaft  = "raft"
	seriesRS    = "rs-raft, k = 3"
	seriesCraft = "craft, k = 3"
	seriesMost  = "craft, k = 4"
)

const craftK = 3

// craftSetup is a cluster of one of the contestants. Snapshots are frequent, so that the disk does not fill up.
func craftSetup(series string, members int) Setup {
	s := Setup{Members: members, Net: craftLink, SnapshotBytes: 64 << 20}
	switch series {
	case seriesRaft:
		s.Protocol = "raft"
	case seriesRS:
		s.Protocol = "rs-raft"
		s.set(fmt.Sprint("code-k=", craftK))
	case seriesCraft:
		s.Protocol = "craft"
		s.set(fmt.Sprint("code-k=", craftK))
	case seriesMost:
		s.Protocol = "craft"
		s.set(fmt.Sprint("code-k=", craftK+1))
	}
	return s
}

var contestants = []string{seriesRaft, seriesRS, seriesCraft}

// Sizes of values, in KiB. From largeValue on they are bodies, as in braid's own server; smaller ones are part of the
// command, which no protocol codes.
const (
	kib        = 1 << 10
	largeValue = 16
)

// writing returns the work with values of this many KiB.
func writing(w Work, x float64) Work {
	if x < largeValue {
		w.Payload = int(x * kib)
	} else {
		w.Body = int(x * kib)
	}
	return w
}

var craftSizes = []float64{1, 4, 16, 64, 128, 256, 512, 1024, 2048}

// The meaning of Case.X with five members and with seven.
const (
	five  = "KiB, 5 members"
	seven = "KiB, 7 members"
)

func membersOf(part string) int {
	if part == five {
		return 5
	}
	return 7
}

// setupText is common to the experiments.
const setupText = "All members run in this process, with real fsyncs and TCP over loopback, and every one of them " +
	"sends at most 550 Mbit/s in all, as the machines of the paper did. They share two cores and one disk, which the " +
	"paper's did not. The three contestants are one program: a value of 16 KiB or more is the body of a command, and " +
	"they differ in what is sent and kept of bodies. raft sends it whole to all; rs-raft always sends a fragment to " +
	"each; craft sends fragments as long as enough members answer, and whole copies otherwise. Smaller values are part " +
	"of the command, as in braid's server, which all members get whole."
