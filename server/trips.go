package server

import "time"

// tripsEvery is how often round trips to the other members are counted.
const tripsEvery = 2 * time.Second

// watchTrips counts the round trips to the members that are connected.
func (s *Server) watchTrips() {
	tick := time.NewTicker(tripsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.stopping:
			return
		}
		for _, p := range s.log.Status().Links.Peers {
			if p.Connected && p.RoundTrip > 0 {
				s.metrics.Trip(p.ID.String(), p.RoundTrip)
			}
		}
	}
}
