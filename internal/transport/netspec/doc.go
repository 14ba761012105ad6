// Package netspec reads specifications of emulated links: the value of the flag --net, for the members of a cluster,
// the benchmarks and the simulator alike.
//
// A specification has parts, with ; or a new line between them. A part without a name is about all
// links and all members:
//
//	latency=5ms,jitter=0.1ms,bandwidth=250mbit,loss=0.1%,nics=2
//	regions=us-east-1+eu-west-1+ap-northeast-1
//
// Latency is one-way; rtt=10ms is the same as latency=5ms. With regions, member i is in the i-th of them, from the
// first on again where there are more members. What the regions' links take comes with the program (regions.go) or
// from parts about pairs of regions. A part about one member gives it a region of its own, or network cards of its
// own:
//
//	m7:region=sa-east-1
//	3:bandwidth=100mbit
//
// A part about a pair sets what differs between two members, between the members of two regions, or within a region; *
// is all members. A~B is both ways, A>B one way:
//
//	1~2:latency=40ms,loss=1%
//	3~4:loss=100%                 nothing arrives: the link is cut
//	ams~fra:rtt=9ms
//	eu-west-1>*:jitter=2ms
//
// Members count more than regions, regions more than *, and a later part more than an earlier one. What a pair does
// not set is as in the parts before.
//
// # Members
//
// A member is found by its name, everywhere and always. Its number is the one in which its name ends: m3, node-3 and
// etcd03 are member 3. So all members agree on it, those that join later and including those that replace others, and
// it never changes. A name without a number has a region only if a part gives it one.
//
// # How to read
//
// spec.go (the meaning of a specification), parse.go (parsing), rate.go, regions.go (round trips between regions of
// public clouds).
//
// May import: nothing of braid.
package netspec
