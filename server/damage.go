package server

import (
	"cmp"
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// A member whose state is damaged serves nothing and raises the alarm CORRUPT for itself. Its
// state is replaced by another member's. Then it ends the alarm and serves again.

// errDamaged is the answer of a member whose state is damaged. Clients then ask another member by
// themselves.
var errDamaged = status.Error(codes.Unavailable, "etcdserver: corrupt member: its state is damaged, another member can be asked")

const (
	// damageTick is how often a member checks whether to raise or to end its alarm.
	damageTick = time.Second
	// shownFor is for how many checks in a row the alarm stays after a repair. Nobody would see
	// one that ends at once.
	shownFor = 3
	// settledAfter is how many checks in a row must find no alarm after a repair, because one that
	// was raised before may still come.
	settledAfter = 30
)

// watchState acts on damage of the state, for the life of the server.
func (s *Server) watchState() {
	tick := time.NewTicker(damageTick)
	defer tick.Stop()
	quiet, shown, told := 0, 0, pb.AlarmRequest_GET
	order := func(action pb.AlarmRequest_AlarmAction) {
		quiet = 0
		err := s.orderAlarm(action)
		if told != action {
			s.logger.Warn("alarm CORRUPT for this member", "action", action.String(), "err", err)
		}
		told = action
	}
	for {
		select {
		case <-s.store.Damage().Found():
			s.log.CheckState()
			s.streams.end(errDamaged)
		case <-tick.C:
		case <-s.stopping:
			return
		}
		switch {
		case s.store.Damage().Err() != nil:
			shown = 0
			s.stepAside()
			order(pb.AlarmRequest_ACTIVATE)
		case !s.store.Damage().Repaired():
		case s.store.Damage().Raised():
			if shown++; shown >= shownFor {
				order(pb.AlarmRequest_DEACTIVATE)
			}
		default:
			if quiet++; quiet < settledAfter {
				continue
			}
			if err := s.store.Damage().ForgetRepair(); err != nil {
				s.logger.Warn("cannot forget that the state was repaired", "err", err)
			}
		}
	}
}

// orderAlarm raises or ends the alarm for this member. If the command is lost, the next check
// repeats it.
func (s *Server) orderAlarm(action pb.AlarmRequest_AlarmAction) error {
	command, err := s.store.AlarmCommand(action, pb.AlarmType_CORRUPT)
	if err != nil {
		return err
	}
	return s.log.ProposeAsync(command, func(any, error) {})
}

// stepAside hands leadership over, because a member that applies nothing can neither end leases
// nor answer.
func (s *Server) stepAside() {
	if !s.self.Load().isLeader() {
		return
	}
	s.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
		defer cancel()
		if err := s.log.TransferLeader(ctx, 0); err != nil {
			s.logger.Warn("a member with a damaged state cannot hand over leadership", "err", err)
		}
	})
}

// fit refuses calls that this member must not serve: all that use the state while it is damaged,
// and those for data while the alarm CORRUPT is raised for this member.
func (s *Server) fit(method string, request any) error {
	if s.store.Damage().Err() != nil {
		switch request.(type) {
		case *pb.StatusRequest, *healthpb.HealthCheckRequest:
			return nil
		}
		return errDamaged
	}
	if s.store.Damage().Raised() && forData(method) {
		return errDamaged
	}
	return nil
}

// forData tells calls that read or write keys and leases.
func forData(method string) bool {
	for _, service := range [...]string{"/etcdserverpb.KV/", "/etcdserverpb.Watch/", "/etcdserverpb.Lease/", "/v3electionpb.", "/v3lockpb."} {
		if strings.HasPrefix(method, service) {
			return true
		}
	}
	return false
}

// scrubState reads the database over and over to find damage.
func (s *Server) scrubState(ctx context.Context) {
	if rate := cmp.Or(s.cfg.Node.Limits.ScrubBytesPerSecond, 4<<20); rate > 0 {
		s.store.Scrub(ctx, int64(rate))
	}
}
