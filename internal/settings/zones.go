package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Members that found a cluster know the zones of all: these are part of the founding configuration, on which quorums
// may depend, and which each of them derives by itself. Any other zone is a change of the membership.

func (s *Settings) checkZone() error {
	if err := protocol.CheckZone(s.Zone); err != nil {
		return fmt.Errorf("--zone %q: %w", s.Zone, err)
	}
	return nil
}

// placePeers sets the zones of the initial cluster: of all its members, or of none. A running cluster has its own.
func (s *Settings) placePeers(peers []Peer) error {
	if s.InitialState == StateExisting {
		return nil
	}
	for _, part := range s.InitialZones {
		name, zone, ok := strings.Cut(strings.TrimSpace(part), "=")
		i := slices.IndexFunc(peers, func(p Peer) bool { return p.Name == name })
		switch {
		case !ok || zone == "":
			return fmt.Errorf("--initial-cluster-zones: %q is not NAME=ZONE", part)
		case protocol.CheckZone(zone) != nil:
			return fmt.Errorf("--initial-cluster-zones: %q: %w", part, protocol.CheckZone(zone))
		case i < 0:
			return fmt.Errorf("--initial-cluster-zones: %s is not in --initial-cluster, whose members are %s", name,
				names(peers))
		case peers[i].Zone != "":
			return fmt.Errorf("--initial-cluster-zones has %s twice", name)
		}
		peers[i].Zone = zone
	}
	i := slices.IndexFunc(peers, func(p Peer) bool { return p.Zone == "" })
	if len(s.InitialZones) > 0 && i >= 0 {
		return fmt.Errorf("--initial-cluster-zones has no zone of %s: give those of all members", peers[i].Name)
	}
	return nil
}

// Founding returns an error unless this member can found the cluster with its own zone: the others derive its zone
// from --initial-cluster-zones. A cluster that runs takes another zone as a change.
func (s *Settings) Founding() error {
	peers, err := s.Peers()
	if err != nil || s.Zone == "" {
		return err
	}
	own := peers[slices.IndexFunc(peers, func(p Peer) bool { return p.Name == s.InitialName })] // check found it
	_, _, _, zones := quorum.Setting.In(s.Values).Parts()
	switch {
	case own.Zone == s.Zone, own.Zone == "" && zones.Count == 0: // there it may come later
		return nil
	case own.Zone == "":
		return errors.New("--zone with quorums by zones: give the zones of all members in --initial-cluster-zones")
	}
	return fmt.Errorf("--zone %s: --initial-cluster-zones says that %s is in %s", s.Zone, s.Name, own.Zone)
}
