package main

import "github.com/spf13/pflag"

// registerShape adds the flags that say how protocols with several instances are set up.
func registerShape(fl *pflag.FlagSet, instances *int, leaders, placement *string) {
	fl.IntVar(instances, "instances", 0, "with niagara: how many instances are woven into one log; with multi-raft and wpaxos: how many groups of keys (0: the protocol's default, 4, or as many as members, or 16)")
	fl.StringVar(leaders, "leaders", "", "with niagara and multi-raft: together, one member leads all instances; or spread over the members (default: spread with placement code and with multi-raft, else together)")
	fl.StringVar(placement, "placement", "", "with niagara: what members keep of large commands: copy, or code, fragments (default copy)")
}
