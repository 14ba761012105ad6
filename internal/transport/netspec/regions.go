package netspec

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Round trips between regions of public clouds, in milliseconds. They are approximate: medians and averages that
// others measured and published, rounded, both directions taken together. They show how far regions are from each
// other, and not what a link between them does at some instant.

// aws is medians of one year up to the middle of 2025, as cloudping.co publishes them
// (api/latencies, p_50, 1Y). That site measures from functions to the regions' public endpoints, so
// links between machines may be a few milliseconds faster.
const aws = `
us-east-1
us-east-2       15
us-west-1       64  53
us-west-2       64  51  22
ca-central-1    16  27  80  61
sa-east-1      115 125 175 175 126
eu-west-1       70  80 130 118  69 178
eu-west-2       78  88 148 129  79 187  14
eu-west-3       84  95 144 135  86 196  20  11
eu-central-1    93 104 153 142  93 204  27  18  12
eu-north-1     112 123 173 155 106 223  41  32  32  23
ap-south-1     191 202 231 222 192 301 126 117 109 129 148
ap-southeast-1 219 203 170 161 215 327 182 172 167 161 181  64
ap-southeast-2 200 188 139 141 198 312 256 266 280 252 272 154  95
ap-northeast-1 149 135 108  98 145 258 201 212 218 227 247 134  71 107
ap-northeast-2 179 165 133 123 175 288 232 242 249 231 250 134  74 145  36
`

// ibm is averages of October 2024, as IBM Cloud documents them for its multizone regions ("network
// latency" of VPC).
const ibm = `
us-south
ca-tor    34
us-east   31  19
eu-de    123  93  91
eu-gb    113  84  76  13
eu-es    119 108  90  29  27
jp-osa   150 170 176 233 245 259
au-syd   185 214 214 250 261 275 122
jp-tok   142 163 168 231 243 256   9 115
br-sao   144 131 119 198 188 207 292 328 285
`

// within is the round trip between members of one region, unless a part sets another one. Zones of a region are a
// fraction of a millisecond to two milliseconds from each other.
const within = 500 * time.Microsecond

// roundTrips has the tables, both ways.
var roundTrips = sync.OnceValue(func() map[[2]string]time.Duration {
	all := map[[2]string]time.Duration{}
	for _, table := range []string{aws, ibm} {
		var before []string
		for line := range strings.Lines(strings.TrimSpace(table)) {
			fields := strings.Fields(line)
			for i, ms := range fields[1:] {
				n, err := strconv.Atoi(ms)
				if err != nil {
					panic(err) // the tables are constants
				}
				trip := time.Duration(n) * time.Millisecond
				all[[2]string{fields[0], before[i]}], all[[2]string{before[i], fields[0]}] = trip, trip
			}
			all[[2]string{fields[0], fields[0]}] = within
			before = append(before, fields[0])
		}
	}
	return all
})

// Regions lists the regions between which round trips come with the program.
func Regions() []string {
	var out []string
	for pair := range roundTrips() { // any order: it is sorted
		if pair[0] == pair[1] {
			out = append(out, pair[0])
		}
	}
	slices.Sort(out)
	return out
}

func builtIn(region string) bool {
	_, ok := roundTrips()[[2]string{region, region}]
	return ok
}
