package bench

import (
	"fmt"

	"github.com/braidlog/braid"
)

// placements are braid's own protocols by their names, and what members keep of bodies
// under each. They are one program but for that.
var placements = map[string]string{
	"raft":    braid.PlacementCopy,
	"craft":   braid.PlacementCode,
	"rs-raft": braid.PlacementRS,
}

// Place sets a node's options as one of braid's own protocols has them. k is how many
// fragments make a body whole, at most; 0: as the protocol chooses.
func Place(o *braid.Options, protocol string, k int) error {
	placement, ok := placements[protocol]
	switch {
	case !ok:
		return fmt.Errorf("unknown protocol %q: it is raft, craft or rs-raft", protocol)
	case k < 0 || k != 0 && placement == braid.PlacementCopy:
		return fmt.Errorf("%d fragments: protocol %s makes none", k, protocol)
	}
	o.Placement, o.CodeK = placement, k
	return nil
}
