package store

import (
	"slices"

	"go.uber.org/zap"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3alarm"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// alarms are those of all members. In etcd each of them concerns the whole cluster: with CORRUPT no member serves
// anything. Here CORRUPT concerns the member that it names: the others are right, and it is repaired from them. So
// etcd's appliers have the common alarms only.
type alarms struct {
	common, corrupt *v3alarm.AlarmStore
}

func openAlarms(lg *zap.Logger, be schema.AlarmBackend) (a *alarms, err error) {
	a = new(alarms)
	isCorrupt := func(m *pb.AlarmMember) bool { return m.Alarm == pb.AlarmType_CORRUPT }
	isCommon := func(m *pb.AlarmMember) bool { return m.Alarm != pb.AlarmType_CORRUPT }
	if a.common, err = v3alarm.NewAlarmStore(lg, someAlarms{be, isCommon}); err != nil {
		return nil, err
	}
	a.corrupt, err = v3alarm.NewAlarmStore(lg, someAlarms{be, isCorrupt})
	return a, err
}

// someAlarms shows a part of the alarms.
type someAlarms struct {
	schema.AlarmBackend
	which func(*pb.AlarmMember) bool
}

// GetAllAlarms implements schema.AlarmBackend.
func (s someAlarms) GetAllAlarms() ([]*pb.AlarmMember, error) {
	all, err := s.AlarmBackend.GetAllAlarms()
	return slices.DeleteFunc(all, func(m *pb.AlarmMember) bool { return !s.which(m) }), err
}

// get returns the alarms of a type, NONE: of all.
func (a *alarms) get(t pb.AlarmType) []*pb.AlarmMember {
	out := a.common.Get(t)
	if t == pb.AlarmType_NONE {
		t = pb.AlarmType_CORRUPT
	}
	return append(out, a.corrupt.Get(t)...)
}

// apply carries out requests about CORRUPT; false: the request is for etcd's applier.
func (a *alarms) apply(r *pb.AlarmRequest) (resp *pb.AlarmResponse, mine bool) {
	resp = &pb.AlarmResponse{}
	var changed *pb.AlarmMember
	switch {
	case r.Action == pb.AlarmRequest_GET:
		resp.Alarms = a.get(r.Alarm)
		return resp, true
	case r.Alarm != pb.AlarmType_CORRUPT:
		return nil, false
	case r.Action == pb.AlarmRequest_ACTIVATE:
		changed = a.corrupt.Activate(types.ID(r.MemberID), r.Alarm)
	case r.Action == pb.AlarmRequest_DEACTIVATE:
		changed = a.corrupt.Deactivate(types.ID(r.MemberID), r.Alarm)
	}
	if changed != nil {
		resp.Alarms = append(resp.Alarms, changed)
	}
	return resp, true
}

// Alarms returns the alarms that are raised, on any member.
func (s *Store) Alarms() []*pb.AlarmMember {
	raised, _, _ := s.limits.now()
	out := raised.get(pb.AlarmType_NONE)
	if s.damage.Err() != nil && !raised.raised(s.opts.MemberID, pb.AlarmType_CORRUPT) { // it cannot see its own
		out = append(out, &pb.AlarmMember{MemberID: s.opts.MemberID, Alarm: pb.AlarmType_CORRUPT})
	}
	return out
}

// raised reports whether an alarm is raised for this member.
func (l *limits) raised(t pb.AlarmType) bool {
	alarms, _, _ := l.now()
	return alarms.raised(l.opts.MemberID, t)
}

func (a *alarms) raised(member uint64, t pb.AlarmType) bool {
	return slices.ContainsFunc(a.get(t), func(m *pb.AlarmMember) bool { return m.MemberID == member })
}

// AlarmCommand returns the command that raises or ends an alarm for this member.
func (s *Store) AlarmCommand(action pb.AlarmRequest_AlarmAction, t pb.AlarmType) ([]byte, error) {
	return alarmCommand(s.opts.MemberID, action, t)
}

func alarmCommand(member uint64, action pb.AlarmRequest_AlarmAction, t pb.AlarmType) ([]byte, error) {
	return encode([]byte{kindRequest},
		&pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{MemberID: member, Action: action, Alarm: t}})
}
