package main

import "github.com/spf13/pflag"

// registerShape adds the flags that say how niagara is set up.
func registerShape(fl *pflag.FlagSet, instances *int, leaders, placement *string) {
	fl.IntVar(instances, "instances", 0, "with niagara: how many instances are woven into one log (0: the protocol's default, 4)")
	fl.StringVar(leaders, "leaders", "", "with niagara: together, one member leads all instances; or spread over the members (default: spread with placement code, else together)")
	fl.StringVar(placement, "placement", "", "with niagara: what members keep of large commands: copy, or code, fragments (default copy)")
}
