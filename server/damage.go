package server

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid/internal/store"
)

// A member whose state is damaged serves nothing and raises the alarm CORRUPT for itself. Its
// state is replaced by another member's. Then it ends the alarm and serves again.

// errDamaged is the answer of a member whose state is damaged. Clients then ask another member by
// themselves.
var errDamaged = status.Error(codes.Unavailable,
	"etcdserver: corrupt member: its state is damaged, another member can be asked")

const (
	// damageTick is how often a member checks whether to raise or to end its alarm.
	damageTick = time.Second
	// shownFor is for how many checks in a row the alarm stays after a repair. No operator would see one that ends at
	// once.
	shownFor = 3
	// quietAfter is how many checks in a row must find no alarm after a repair, because one that was raised before may
	// still come.
	quietAfter = 30
)

// damageWatch acts on damage of the state: it raises and ends this member's alarm, and has the state replaced.
type damageWatch struct {
	store      *store.Store
	log        Log
	streams    *openStreams
	self       *atomic.Pointer[selfView]
	logger     *slog.Logger
	timeout    time.Duration
	stopping   <-chan struct{}
	background *sync.WaitGroup
}

// run acts on damage of the state, until the server stops.
func (d *damageWatch) run() {
	tick := time.NewTicker(damageTick)
	defer tick.Stop()
	quiet, shown, logged := 0, 0, pb.AlarmRequest_GET
	order := func(action pb.AlarmRequest_AlarmAction) {
		quiet = 0
		err := d.orderAlarm(action)
		log := d.logger.With("action", action.String())
		switch {
		case logged == action:
		case err != nil:
			log.Warn("cannot order the alarm CORRUPT for this member, trying again", "err", err)
		default:
			log.Info("ordered the alarm CORRUPT for this member")
		}
		logged = action
	}
	for {
		select {
		case <-d.store.Damage().Found():
			d.log.CheckState()
			d.streams.end(errDamaged)
		case <-tick.C:
		case <-d.stopping:
			return
		}
		switch {
		case d.store.Damage().Err() != nil:
			shown = 0
			d.stepAside()
			order(pb.AlarmRequest_ACTIVATE)
		case !d.store.Damage().Repaired():
		case d.store.Damage().Raised():
			if shown++; shown >= shownFor {
				order(pb.AlarmRequest_DEACTIVATE)
			}
		default:
			if quiet++; quiet < quietAfter {
				continue
			}
			if err := d.store.Damage().ForgetRepair(); err != nil {
				d.logger.Warn("cannot forget that the state was repaired", "err", err)
			}
		}
	}
}

// orderAlarm raises or ends the alarm for this member. If the command is lost, the next check
// repeats it.
func (d *damageWatch) orderAlarm(action pb.AlarmRequest_AlarmAction) error {
	command, err := d.store.AlarmCommand(action, pb.AlarmType_CORRUPT)
	if err != nil {
		return err
	}
	return d.log.ProposeAsync(command, func(any, error) {})
}

// stepAside hands leadership over, because a member that applies nothing can neither end leases
// nor answer.
func (d *damageWatch) stepAside() {
	if !d.self.Load().isLeader() {
		return
	}
	d.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), d.timeout)
		defer cancel()
		if err := d.log.TransferLeader(ctx, 0); err != nil {
			d.logger.Warn("a member with a damaged state cannot hand over leadership", "err", err)
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

// forData reports whether a call reads or writes keys or leases.
func forData(method string) bool {
	for _, service := range [...]string{"/etcdserverpb.KV/", "/etcdserverpb.Watch/", "/etcdserverpb.Lease/",
		"/" + putService + "/", "/v3electionpb.", "/v3lockpb."} {
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
