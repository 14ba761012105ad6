package sim

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/protocol"
)

var (
	powerLostWhileStarting = count.New("power_lost_while_starting", "half starts")
	nonsenseProposed       = count.New("nonsense_proposed", "nonsense proposed")
	membersRemoved         = count.New("members_removed", "members removed")
)

// faultKind is a kind of fault, or of what an operator does.
type faultKind int

const (
	faultCrash     faultKind = iota // one member loses power
	faultPower                      // all members lose power at once
	faultPause                      // a process stands still, as for garbage collection
	faultPartition                  // the cluster falls into two parts
	faultIsolate                    // the leader is alone, in one or both directions
	faultOneWay                     // one link works in one direction only
	faultBurst                      // many messages are lost for a while
	faultSlowDisk                   // a disk becomes slow
	faultStallDisk                  // a disk stands still
	faultDeadSync                   // a disk fails its syncs
	faultTransfer                   // the operator hands over leadership
	faultChange                     // the operator changes the membership
	faultClock                      // a clock's rate changes, a stopped member's clock jumps
	faultDamage                     // bytes of a body are damaged on a disk
	faultReshape                    // the operator changes how many instances there are
	faultFreeze                     // a process stands still in the middle of a turn of its event loop
	faultRot                        // bytes of a log or a snapshot are damaged on a disk
	faultGarble                     // a member proposes entries that no member should propose
	faultWipe                       // a member loses its disk and is started as if nothing had happened
	faultOldDisk                    // an old copy of a disk is put in its place
	faultFull                       // a disk has no space, or all have none
	faultLag                        // a member applies nothing for a while
	faultNarrow                     // links to or from a member are narrow
	faultAway                       // a member is away until a leader has cut entries that it lacks
	faultIO                         // a disk fails an operation
	faultState                      // the state that a state machine keeps on disk is damaged
	faultHotCopy                    // a copy of a running member's disk is put in its place
	faultLate                       // a member misses entries and catches up over narrow links
	faultStraggle                   // members change while somebody does not know of all bodies
	faultHold                       // links of a leader stand still, and lose nothing
	faultHubs                       // only some members have links with all others
	faultPromise                    // members are about to vote when they hear of the leader again
	faultMove                       // members start at other addresses
	faultKinds
)

var faultNames = [faultKinds]string{
	"crash", "power", "pause", "partition", "isolate", "one-way", "burst", "slow-disk", "stalled-disk", "failed-sync",
	"transfer", "change", "clock", "damage", "reshape", "freeze", "rot", "garble", "wipe", "old-disk", "full-disk",
	"lag", "narrow", "away", "io-error", "state-damage", "hot-copy", "late", "straggle", "hold", "hubs", "promise", "move",
}

// drawFaults chooses which faults a run has and how often.
func (s *Settings) drawFaults(d chance) {
	if d.yes(0.05) {
		return // a quiet run
	}
	for k := range faultDamage { // faultDamage needs bodies: see drawBodies
		if d.yes(0.45) {
			s.Faults[k] = s.Election * time.Duration(2+d.below(20))
		}
	}
}

// drawTurns chooses whether processes freeze inside turns. In some of these runs nothing else
// happens: leaders have leases, and clients ask leaders that are frozen.
func (s *Settings) drawTurns(d chance) {
	if !d.yes(0.3) {
		return
	}
	s.Faults[faultFreeze] = s.Election * time.Duration(2+d.below(20))
	if d.yes(0.3) {
		s.Faults = [faultKinds]time.Duration{faultFreeze: s.Election * time.Duration(3+d.below(4))}
		s.Clients, s.Keys, s.Operations, s.Reads, s.Think, s.Patience = 6, 1, 300, 0.5, s.Heartbeat, s.Election
		s.Core.LeaseReads = true
		s.setDrift(min(s.Drift, s.mostDrift()))
	}
}

// drawProposers chooses whether members propose nonsense.
func (s *Settings) drawProposers(d chance) {
	if d.yes(0.2) {
		s.Faults[faultGarble] = s.Election * time.Duration(1+d.below(10))
	}
}

// garble lets a member propose an entry that no member can apply. The entry's digest is right.
func (w *World) garble(m *Member) {
	e := protocol.Entry{Kind: protocol.EntryBatch, Count: 1, Payload: protocol.AppendCommand(nil, []byte("garbled"))}
	switch w.Pick(6) {
	case 0:
		e.Count++
	case 1:
		e.Payload = append(e.Payload, 1)
	case 2:
		e.Payload = e.Payload[:len(e.Payload)-1]
	case 3:
		e.Count = 1 << 31
	case 4:
		e.Low = 1
	case 5:
		e = protocol.NewReshape(protocol.MaxInstances + 1 + w.Pick(1000))
	}
	e.SealPayload()
	e.Seal(0, 0, make([]byte, protocol.HeadSize))
	w.Count(nonsenseProposed)
	w.Tracef("FAULT %s proposes nonsense", m.id)
	m.whenAwake(func() {
		if s := m.inForce[w.Pick(len(m.inForce))]; m.up {
			s.step(protocol.Propose{Entries: []protocol.Entry{e}})
		}
	})
}

// openFaults plans the first fault of each kind.
func (w *World) openFaults() {
	for k, every := range w.set.Faults {
		if every > 0 {
			w.planFault(faultKind(k), every)
		}
	}
}

func (w *World) planFault(k faultKind, every time.Duration) {
	w.After(time.Duration(w.Rand.ExpFloat64()*float64(every)), func() {
		if w.calm {
			return
		}
		if victim := w.victim(); victim != nil {
			w.strike(k, victim)
			w.another(victim)
		}
		w.planFault(k, every)
	})
}

// strike lets one fault happen. victim is the member, where the fault concerns only one.
func (w *World) strike(k faultKind, victim *Member) {
	if victim == nil {
		return
	}
	switch k {
	case faultCrash:
		w.stop(victim)
	case faultPower:
		w.powerLoss()
	case faultPause:
		victim.paused = w.Now() + w.still(3*w.set.Election)
		w.Tracef("FAULT %s pauses until %.6f", victim.id, victim.paused.Seconds())
	case faultFreeze:
		d := w.still(4 * w.set.Election)
		if l := w.someLeader(); l != nil && w.Chance(0.5) {
			victim = l
		}
		w.Tracef("FAULT %s freezes in a turn until %.6f", victim.id, (w.Now() + d).Seconds())
		victim.freeze(d)
	case faultGarble:
		w.garble(victim)
	case faultPartition, faultIsolate, faultOneWay:
		w.cut(k, victim)
	case faultBurst:
		w.burst = w.Rand.Float64()
		w.Tracef("FAULT %.0f%% of all messages are lost", 100*w.burst)
		w.After(w.Between(0, 3*w.set.Election), func() { w.burst = 0 })
	case faultSlowDisk, faultStallDisk, faultDeadSync:
		w.hurtDisk(k, victim)
	case faultIO:
		w.failOperation(victim)
	case faultFull:
		w.fillDisks(victim)
	case faultTransfer:
		w.transfer(victim)
	case faultChange:
		w.changeMembers()
	case faultReshape:
		w.reshape()
	case faultDamage:
		victim.whenWritten(64, func() { w.damage(victim) })
	case faultRot:
		victim.whenWritten(8, func() { w.rot(victim) })
	case faultWipe, faultOldDisk:
		w.loseDisk(k, victim)
	case faultClock:
		victim.setRate(w.wrongRate())
	case faultLag:
		w.lag(victim)
	case faultNarrow:
		w.narrowLinks(victim)
	case faultAway:
		w.leaveAway(victim)
	case faultState:
		w.spoilState(victim)
	case faultHotCopy:
		w.copyHot(victim)
	case faultLate:
		w.beLate(victim)
	case faultStraggle:
		w.straggle()
	case faultHold:
		w.holdLinks(victim)
	case faultHubs:
		w.cutToHubs()
	case faultPromise:
		w.promise()
	case faultMove:
		w.moveMembers(victim)
	}
}

// victim draws a member that runs. It prefers leaders.
func (w *World) victim() *Member {
	var up []*Member
	for _, m := range w.members {
		if m.up {
			up = append(up, m)
			if m.leadsAny() && w.Chance(0.3) {
				return m
			}
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[w.Pick(len(up))]
}

// leader is the member that leads the latest term of the first instance, or nil.
func (w *World) leader() (leader *Member) { return w.leaderOf(firstInstance) }

// someLeader is the leader of some instance, or nil.
func (w *World) someLeader() *Member {
	return w.leaderOf(w.allJudges[w.Among(len(w.allJudges))].instance)
}

func (w *World) leaderOf(instance protocol.InstanceID) (leader *Member) {
	last := protocol.Term(0)
	for _, m := range w.members {
		if !m.up {
			continue
		}
		if s := m.of(instance); s != nil && !s.ended && s.leads() && s.witness.status.Term > last {
			leader, last = m, s.witness.status.Term
		}
	}
	return leader
}

// stop lets a member stop: it loses power at once or at a write soon, or it is told to stop. In
// each case it starts again later.
func (w *World) stop(m *Member) {
	if w.Chance(0.4) {
		m.disk.PowerAt = 1 + w.Pick(20)
		w.Tracef("FAULT %s will lose power at its write number %d", m.id, m.disk.PowerAt)
		return
	}
	back := w.Between(0, 6*w.set.Election)
	if w.Chance(0.3) {
		w.leave(m, back)
		return
	}
	w.Tracef("FAULT %s loses power", m.id)
	m.crash()
	w.startLater(m, back)
}

func (w *World) powerLoss() {
	w.Tracef("FAULT everybody loses power")
	for _, m := range w.members {
		if m.up {
			m.crash()
			w.startLater(m, w.Between(0, w.set.Election))
		}
	}
}

// startLater starts a member after a while.
func (w *World) startLater(m *Member, d time.Duration) {
	w.After(d, func() { w.startMember(m) })
}

// startMember starts a member. Sometimes it loses power during its recovery, or soon after.
func (w *World) startMember(m *Member) {
	if m.up || m.gone || m.away || m.apart != nil || w.Broken != nil {
		return
	}
	m.disk.FailSync = false // syncs work again, on the same disk
	m.disk.PowerAt = 0
	if w.calm {
		m.disk.FailAt = 0
	}
	if !w.calm && w.Chance(0.1) {
		m.disk.PowerAt = 1 + w.Pick(20) // the member may start before that, and run for a while
	}
	w.boot(m)
}

// boot starts a member on its disk as the disk is.
func (w *World) boot(m *Member) {
	m.backUp()
	w.Tracef("FAULT %s starts", m.id)
	ready := m.startsFull()
	err := m.start()
	if m.disk.Full && !ready && errors.Is(err, syscall.ENOSPC) {
		w.Tracef("FAULT %s cannot start: %v", m.id, err)
		m.disk = m.disk.Crash(w.Rand) // either it had no log yet, or it tries again later
		w.startLater(m, w.set.Election)
		return
	}
	if errors.Is(err, device.ErrIO) {
		w.Tracef("FAULT %s cannot start: %v", m.id, err)
		w.Count(stoppedByIOErrors)
		m.disk = m.disk.Crash(w.Rand)
		w.startLater(m, w.Between(0, w.set.Election))
		return
	}
	if errors.Is(err, device.ErrPower) {
		w.Tracef("FAULT %s loses power while it starts", m.id)
		w.Count(powerLostWhileStarting)
		m.disk = m.disk.Crash(w.Rand)
		w.startLater(m, w.Between(0, w.set.Election))
		return
	}
	if err != nil && m.foundAstray(err) {
		m.disk = m.disk.Crash(w.Rand)
		return
	}
	if m.strange() && errors.As(err, new(*cluster.ForgottenError)) {
		w.Tracef("%s does not start: %v", m.id, err)
		return
	}
	if err != nil {
		w.Violate(m.id, fmt.Errorf("does not start: %w", err))
		return
	}
}

// cut cuts links. Mostly they heal after a while.
func (w *World) cut(k faultKind, victim *Member) {
	if !w.Chance(w.set.Meet.Overlap) {
		w.heal()
	}
	alone := w.someLeader()
	if alone == nil || k == faultOneWay {
		alone = victim
	}
	side := func(m *Member) bool { return m == alone }
	if k == faultPartition {
		part := w.Rand.Uint64()
		side = func(m *Member) bool { return part>>m.id&1 == 0 }
	}
	long := k == faultIsolate && w.Chance(w.set.Meet.Long)
	both := k == faultPartition && w.Chance(0.8) || k == faultIsolate && w.Chance(0.5) || long
	outward := w.Chance(0.5)
	other := protocol.MemberID(1 + w.Pick(len(w.members)))
	for _, a := range w.members {
		for _, b := range w.members {
			if a == b || side(a) == side(b) || k == faultOneWay && (side(a) && b.id != other || side(b) && a.id != other) {
				continue
			}
			w.net.Link(a.id, b.id).Cut = both || side(a) == outward
		}
	}
	w.Tracef("FAULT links are cut:%s", w.describeCuts())
	if k != faultOneWay && alone.leadsAny() {
		w.clocksAgainst(alone)
	}
	if long {
		w.After(w.election(), w.heal)
	} else if w.Chance(0.7) {
		w.After(w.Between(0, 8*w.set.Election), w.heal)
	}
}

func (w *World) describeCuts() string {
	text := ""
	for _, a := range w.members {
		for _, b := range w.members {
			if a != b && w.net.Link(a.id, b.id).Cut {
				text += " " + a.id.String() + "→" + b.id.String()
			}
		}
	}
	return text
}

// heal makes all links work, except those of a member that is away.
func (w *World) heal() {
	for _, a := range w.members {
		for _, b := range w.members {
			w.net.Link(a.id, b.id).Cut = a.away || b.away
		}
	}
}

func (w *World) hurtDisk(k faultKind, m *Member) {
	switch k {
	case faultSlowDisk:
		m.slow = !m.slow
		w.Tracef("FAULT the disk of %s is slow: %t", m.id, m.slow)
	case faultStallDisk:
		m.stalled = w.Now() + w.Between(0, 10*w.set.Election)
		w.Tracef("FAULT the disk of %s stands still until %.6f", m.id, m.stalled.Seconds())
	case faultDeadSync:
		m.disk.FailSync = true
		w.Tracef("FAULT the disk of %s fails its syncs", m.id)
	}
}

// transfer is the operator who wants another leader. He asks any member. Members tell each other's
// instances to hand over too: see instance.LeaderPreference.
func (w *World) transfer(m *Member) {
	instance := w.allJudges[w.Among(len(w.allJudges))].instance
	if leader := w.leaderOf(instance); leader != nil && w.Chance(0.6) {
		m = leader
	}
	to := protocol.MemberID(w.Pick(w.set.Nodes + 1))
	w.Tracef("FAULT %s is told to hand leadership%s to %s", m.id, w.named(instance), to)
	if instance == firstInstance {
		w.ask(m, cluster.Operation{Kind: cluster.TransferLeader, To: to}, w.Between(w.set.Election, 10*w.set.Election), func(error) {})
		return
	}
	m.whenAwake(func() { m.tell([]member.InstanceInput{{Instance: instance, Input: protocol.Transfer{To: to}}}) })
}

// setRate changes how fast the clock runs from now on; it does not jump.
func (m *Member) setRate(rate float64) {
	now := m.clock()
	m.rate = rate
	m.offset += now - m.clock()
	m.w.Tracef("FAULT the clock of %s runs at %.4f", m.id, rate)
}

// changeMembers does what operators do: it adds learners, makes them voters, and replaces and
// removes members.
func (w *World) changeMembers() {
	m, knows := w.asked(), w.leader() // the operator may know more than the member that he asks
	if knows == nil {
		knows = m
	}
	config := knows.witness.status.Config
	changes := []protocol.Change(nil)
	if w.set.Resize {
		changes = w.drawResize(&config)
	} else {
		changes = w.drawChange(&config)
	}
	if undo := w.unknown(m, &config); len(undo) > 0 && !w.set.Resize && w.Chance(0.5) {
		changes = undo
	}
	if lost := w.lostOf(&config); len(lost) > 0 {
		changes = w.replaceLost(&config, lost[0])
	}
	if len(changes) == 0 {
		return
	}
	w.askChange(m, changes)
	if changes[0].Kind == protocol.AddLearner {
		w.promoteLater(changes[0].Member.ID)
	}
}

// promoteLater is the operator who added a learner. He comes back until the learner has taken the
// place of a voter, of one that is down if there is one.
func (w *World) promoteLater(learner protocol.MemberID) {
	w.After(w.Between(w.set.Election/4, w.set.Election), func() {
		m := w.leader()
		if w.calm {
			return
		}
		if m != nil {
			config := &m.witness.status.Config
			voters := config.Voters()
			if x := config.Find(learner); len(voters) == 0 || x != nil && !x.Learner || x == nil && slices.Contains(config.Removed, learner) {
				return
			}
			i := slices.IndexFunc(voters, func(id protocol.MemberID) bool { return !w.member(id).up })
			if i < 0 {
				i = w.Pick(len(voters))
			}
			w.askChange(m, []protocol.Change{{Kind: protocol.AddVoter, Member: protocol.Member{ID: learner}}, {Kind: protocol.RemoveMember, Member: protocol.Member{ID: voters[i]}}})
		}
		w.promoteLater(learner)
	})
}

// drawResize makes the cluster smaller, by one member or several at once, down to three members or
// fewer. Then it makes the cluster as large as it was. So many members may leave that the rows of
// live bodies are not enough: then those who stay make whole copies first.
func (w *World) drawResize(config *protocol.Config) (changes []protocol.Change) {
	voters := config.Voters()
	if len(voters) <= 3 {
		w.growing = true
	} else if len(voters) >= w.set.Nodes {
		w.growing = false
	}
	if w.growing {
		for i := range config.Members {
			if m := &config.Members[i]; m.Learner {
				return []protocol.Change{{Kind: protocol.AddVoter, Member: protocol.Member{ID: m.ID}}}
			}
		}
		if len(w.members) < w.set.Nodes+maxAdded {
			return []protocol.Change{{Kind: protocol.AddLearner, Member: w.addMember()}}
		}
		w.growing = false
	}
	least := 1
	if w.set.Faults[faultDamage] > 0 {
		least = leastDamaged
	}
	leave := len(voters) - 1 - w.Pick(3)
	if leave < 1 || w.Chance(0.5) {
		leave = 1
	}
	for range min(leave, len(voters)-least) {
		i := w.Pick(len(voters))
		changes = append(changes, protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: voters[i]}})
		voters = slices.Delete(voters, i, i+1)
	}
	return changes
}

// askChange asks a member for changes. Where bodies may have to be made whole first, the operator
// waits for longer.
func (w *World) askChange(m *Member, changes []protocol.Change) {
	patience := w.Between(w.set.Election, 20*w.set.Election)
	if w.set.Resize {
		patience = 30 * w.set.Election
	}
	w.Tracef("FAULT %s is asked for %s", m.id, describeChanges(changes))
	w.ask(m, cluster.Operation{Kind: cluster.ChangeMembers, Changes: changes}, patience, func(error) {})
}

// asked is the member that an operator asks for something: often one that does not know that another
// leads by now, mostly the leader.
func (w *World) asked() *Member {
	if old := w.upAnd(func(m *Member) bool { return m.leadsAny() && m.replaced() }); len(old) > 0 && w.Chance(0.5) {
		return old[w.Among(len(old))]
	}
	if m := w.leader(); m != nil && !w.Chance(0.3) {
		return m
	}
	return w.victim()
}

// unknown is a change that the member takes for made, if it does not know one that was made.
func (w *World) unknown(m *Member, config *protocol.Config) (changes []protocol.Change) {
	behind := m.applier.Config()
	for _, x := range config.Members {
		if behind.Find(x.ID) == nil && len(behind.Members) > 0 && len(config.Voters()) > 1 {
			return []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: x.ID}}}
		}
	}
	return nil
}

// maxAdded is how many members may join during one run.
const maxAdded = 4

func (w *World) drawChange(config *protocol.Config) []protocol.Change {
	voters := config.Voters()
	if len(voters) == 0 {
		return nil
	}
	var learners []protocol.MemberID
	for i := range config.Members {
		if config.Members[i].Learner {
			learners = append(learners, config.Members[i].ID)
		}
	}
	some := protocol.Member{ID: voters[w.Pick(len(voters))]}
	spare := len(w.members) < w.set.Nodes+maxAdded
	switch x := w.Pick(6); {
	case x == 0 && len(learners) > 0:
		return []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: learners[0]}}}
	case x <= 2 && len(learners) > 0:
		return w.promote(learners, some)
	case x == 3 && len(voters) > 1 && len(voters) > w.set.Nodes/2:
		return []protocol.Change{{Kind: protocol.RemoveMember, Member: some}}
	case x == 4 && spare:
		return []protocol.Change{{Kind: protocol.AddVoter, Member: w.addMember()}, {Kind: protocol.RemoveMember, Member: some}}
	case x == 5:
		some.Name = "renamed"
		return []protocol.Change{{Kind: protocol.UpdateMember, Member: some}}
	case spare:
		kind := protocol.AddLearner
		if w.Chance(0.3) {
			kind = protocol.AddVoter
		}
		return []protocol.Change{{Kind: kind, Member: w.addMember()}}
	}
	return nil
}

// promote makes learners voters, half of the time in the place of another voter.
func (w *World) promote(learners []protocol.MemberID, some protocol.Member) (changes []protocol.Change) {
	for _, id := range learners {
		changes = append(changes, protocol.Change{Kind: protocol.AddVoter, Member: protocol.Member{ID: id}})
		if w.Chance(0.5) {
			break
		}
	}
	if w.Chance(0.5) {
		changes = append(changes, protocol.Change{Kind: protocol.RemoveMember, Member: some})
	}
	return changes
}

// addMember starts a process with an empty disk. It waits until it hears of its cluster.
func (w *World) addMember() protocol.Member {
	m := newMember(w, protocol.MemberID(len(w.members)+1))
	m.join = true
	w.members = append(w.members, m)
	if w.set.Chaos > 0 && w.Chance(0.15) { // in a scenario there is no chance
		w.Tracef("FAULT %s will never come", m.id)
		m.gone = true
		return protocol.Member{ID: m.id, PeerURLs: m.urls()}
	}
	w.startLater(m, w.Between(0, w.set.Election))
	return protocol.Member{ID: m.id, PeerURLs: m.urls()}
}

func describeChanges(changes []protocol.Change) string {
	names := [...]string{protocol.AddVoter: "voter", protocol.AddLearner: "learner", protocol.RemoveMember: "remove", protocol.UpdateMember: "update", protocol.AddJoining: "joining"}
	text := ""
	for _, c := range changes {
		text += names[c.Kind] + " " + c.Member.ID.String() + " "
	}
	return text
}

// retire stops members for good that a committed configuration has removed.
func (w *World) retire(removed []protocol.MemberID) {
	for _, id := range removed {
		m := w.member(id)
		if m.gone || m.retiring {
			continue
		}
		m.retiring = true
		w.Count(membersRemoved)
		if w.Chance(0.5) {
			continue // nobody switches it off: it must find out by itself
		}
		w.After(w.Between(0, 10*w.set.Election), func() {
			if m.gone {
				return
			}
			if !w.recoverable(w.except(m)) {
				m.retiring = false // not yet
				return
			}
			w.Tracef("FAULT %s is switched off: it was removed", m.id)
			m.crash()
			m.gone = true
		})
	}
}

// core draws the members that live in the second phase: all, or some that can decide in every
// configuration that may still be in force.
func (w *World) core() []*Member {
	alive := slices.DeleteFunc(slices.Clone(w.members), func(m *Member) bool { return m.gone || m.strange() })
	if w.Chance(0.5) || w.anySick() { // while a state is damaged, no other member may be missing
		return alive
	}
	for range len(alive) {
		i := w.Pick(len(alive))
		less := slices.Delete(slices.Clone(alive), i, i+1)
		if w.decisive(less) && !w.joins(alive[i]) {
			alive = less
		}
	}
	return alive
}

// joins reports whether a leader may make a member a voter at any moment. It may do so because it has
// just heard of the member, even if that one has stopped since or what it sent is still on the way.
func (w *World) joins(m *Member) bool {
	return slices.ContainsFunc(w.members, func(o *Member) bool {
		return o.up && slices.ContainsFunc(o.inForce, func(s *memberInstance) bool {
			x := s.witness.status.Config.Find(m.id)
			return x != nil && x.Joining
		})
	})
}

// decisive reports two things: the members can elect and decide in every configuration that may come into
// force, and they hold enough of every live body.
func (w *World) decisive(members []*Member) bool {
	if len(members) < w.set.decides() || !w.recoverable(members) {
		return false
	}
	lives := func(id uint64) bool {
		return slices.ContainsFunc(members, func(m *Member) bool { return uint64(m.id) == id })
	}
	quorums := w.set.judgeQuorums()
	for _, c := range w.allJudges {
		voters := slices.Concat(c.ledger.Configurations(), w.yetToFollow(c), c.proposed(w))
		if slices.ContainsFunc(voters, func(v *check.Voters) bool { return !quorums.Reads(v, lives) || !quorums.Writes(v, lives) }) {
			return false
		}
	}
	return true
}

// proposed returns the voters of memberships that members propose, or are about to for an operator,
// and that are in no log yet.
func (c *instanceJudges) proposed(w *World) (voters []*check.Voters) {
	for _, m := range w.members {
		if !m.up {
			continue
		}
		for _, s := range m.inForce {
			if s.judges != c {
				continue
			}
			st := s.witness.Core.Status()
			if st.Proposed != nil {
				voters = append(voters, votersOf(st.Proposed))
			}
			for _, e := range m.executing {
				if next, reason := st.Config.Changed(e.Op.Changes); reason == protocol.ReasonNone {
					voters = append(voters, votersOf(&next))
				}
			}
		}
	}
	return voters
}

// yetToFollow returns the voters of the first instance's decided memberships that another instance
// has not followed yet. It may follow each of them: removals do not wait for one another.
func (w *World) yetToFollow(c *instanceJudges) (voters []*check.Voters) {
	if c.ended || c == w.instanceJudges {
		return nil
	}
	has := &c.configs[len(c.configs)-1].config
	for _, d := range slices.Backward(w.instanceJudges.configs) {
		if d.config.SameMembers(has) {
			break
		}
		voters = append(voters, votersOf(&d.config))
	}
	return voters
}

// leadsAny reports whether the member believes that it leads some instance.
func (m *Member) leadsAny() bool { return slices.ContainsFunc(m.inForce, (*memberInstance).leads) }
