package history

import (
	"math"
	"time"
)

// Reading is what is read of a member at one moment. Counters are since the member started.
type Reading struct {
	At time.Time
	// Writes and Reads are the requests of clients that were answered, by how long they took; Failed are those that
	// ended with an error of the cluster.
	Writes, Reads Distribution
	Failed        uint64
	// Applied is the position up to which commands are applied.
	Applied uint64
	// LogBytes and Syncs are what the disk of the log did.
	LogBytes uint64
	Syncs    Distribution
	// Sent and Received are bytes of the links to members, ClientIn and ClientOut bytes of gRPC from and to clients.
	Sent, Received, ClientIn, ClientOut int64
	CPU                                 time.Duration // of the process; 0: not known
	Memory                              int64         // resident bytes; 0: not known
	DB, DBInUse, LogSize                int64         // bytes
	DiskFree                            int64         // bytes; negative: not known
	Lag                                 uint64        // entries committed and not applied
	Pending                             int64         // bytes of proposals that are not completed
	// Slots came into the log, Skipped of them without a value; HasSlots: the protocol has slots.
	Slots, Skipped       uint64
	HasSlots             bool
	Connections, Watches int64
}

// Distribution counts times. Counts[i] is how many were up to Bound(i) and above Bound(i-1); the last has no bound.
type Distribution struct {
	Counts []uint64
	Bound  func(i int) time.Duration
}

func (d Distribution) total() (n uint64) {
	for _, c := range d.Counts {
		n += c
	}
	return n
}

// since is the distribution of what came after before.
func (d Distribution) since(before Distribution) Distribution {
	if len(before.Counts) != len(d.Counts) {
		return d
	}
	out := Distribution{make([]uint64, len(d.Counts)), d.Bound}
	for i, n := range d.Counts {
		out.Counts[i] = n - min(n, before.Counts[i])
	}
	return out
}

// quantile is the time, in milliseconds, that a share q of the times does not exceed: interpolated within an element.
// NaN: there are no times.
func (d Distribution) quantile(q float64) float64 {
	rest := q * float64(d.total())
	if rest == 0 {
		return math.NaN()
	}
	for i, n := range d.Counts {
		if float64(n) < rest {
			rest -= float64(n)
			continue
		}
		low := time.Duration(0)
		if i > 0 {
			low = d.Bound(i - 1)
		}
		if i == len(d.Counts)-1 {
			return milliseconds(low)
		}
		return milliseconds(low) + rest/float64(n)*milliseconds(d.Bound(i)-low)
	}
	return milliseconds(d.Bound(len(d.Counts) - 2))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
