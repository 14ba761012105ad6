package paper

import (
	"fmt"
	"time"
)

// The thesis's load: key-value servers over HTTP.

// byWrites has one rate, and varies the share of writes.
const byWrites = "share of writes in %, 5,400 requests/s over HTTP, 3 members"

// webRates are the offered rates; the last one is above the capacity.
var webRates = []float64{540, thesisLow, 10 * thesisLow}

func byWebRate(members int) string {
	return fmt.Sprintf("requests/s offered over HTTP, %d members", members)
}

const issWebText = "The parts over HTTP have the thesis's load: 12,000 keys, six callers with a connection for each " +
	"request that is under way, 1,536 of those at most, and keys that are normally distributed around a middle of the " +
	"caller's own. Each caller keeps to one member. Members serve a map (bench/mapkv). A read is a command in the log, " +
	"as a write is; in the thesis's runs there are only reads, and here also half and all writes, of 16 bytes."

// issCallers is the maximal number of requests in progress: six times 256.
const issCallers = webCallers * 256

func webCases() (cases []Case) {
	add := func(part string, x float64, members int, w Work, quick bool) {
		w.For, w.Inflight, w.At, w.Payload = time.Second, issCallers, AtMembers, defaultPayload
		for _, protocol := range []string{seriesRaft, seriesMultiPaxos, seriesISS} {
			s := issSetup(protocol, members)
			s.HTTP = true
			cases = append(cases, Case{Series: protocol, Part: part, X: x, Setup: s, Work: w, Full: !quick})
		}
	}
	for _, n := range issMembers {
		for _, rate := range webRates {
			add(byWebRate(n), rate, n, Work{Rate: rate}, rate != webRates[0] && n == 3)
		}
	}
	for _, percent := range []float64{0, 50, 100} {
		add(byWrites, percent, 3, Work{Rate: thesisLow, Writes: percent / 100}, false)
	}
	return cases
}

func webClaims() []Claim {
	low := func(series string) where { return where{series, thesisLow, byWebRate(3)} }
	return []Claim{
		{
			Text: "over HTTP a request takes at most 1.1 times what it takes with multi-paxos", Paper: 14,
			PaperUnit: "× EPaxos", Unit: "×",
			Measure: times(P50, low(seriesISS), low(seriesMultiPaxos)), Holds: atMost(1.1),
			Note: "Medians at 5,400 requests/s, all reads in the log, callers at all 3 members. The thesis's is 14 to " +
				"60 times EPaxos's.",
		},
		{
			Text: "over HTTP iss does as much as multi-paxos", Unit: "×",
			Measure: peak(Throughput, seriesISS, byWebRate(3), seriesMultiPaxos, byWebRate(3)), Holds: atLeast(0.9),
			Note: "The highest throughputs, 3 members. HTTP takes most of the two cores with either. In the thesis iss does " +
				"about twice as much as EPaxos and WPaxos.",
		},
	}
}
