package paper

import (
	"context"
	"time"

	"github.com/braidlog/braid/bench"
)

// uses are the resource uses of a cluster's processes; empty if its members have no separate ones.
type uses struct {
	leader    Use
	followers []Use // of the running ones
}

// uses asks all processes. With collect they collect garbage before, so that the rest is in use.
func (t *braidTarget) uses(ctx context.Context, leader *member, collect bool) (u uses, err error) {
	if !t.setup.Processes {
		return u, nil
	}
	for _, m := range t.members {
		p, ok := m.node.(*process)
		if !ok {
			continue // stopped
		}
		one, err := call[Use](ctx, p, "Use", collect)
		if err != nil {
			return u, err
		}
		if m == leader {
			u.leader = one
		} else {
			u.followers = append(u.followers, one)
		}
	}
	return u, nil
}

// cpu is the CPU time of all of them, and of this process.
func (u *uses) cpu() time.Duration {
	sum := bench.CPUTime() + u.leader.CPU
	for i := range u.followers {
		sum += u.followers[i].CPU
	}
	return sum
}

// addCosts adds the cost of a given number of commands that were answered in some time.
func (s Sample) addCosts(before, after *reading, commands float64, took time.Duration) {
	s.addCPU(after.cpu-before.cpu, commands)
	s[Egress] = float64(after.leader.Links.EgressBytes-before.leader.Links.EgressBytes) / commands
	s[EgressAll] = float64(after.egress()-before.egress()) / commands
	if n := after.messages() - before.messages(); n > 0 {
		s[Messages] = float64(n) / commands
	}
	if syncs := float64(after.syncs - before.syncs); syncs > 0 {
		s[SyncsAll], s[SyncAllMean] = syncs/commands, ms(after.syncTime-before.syncTime)/syncs
	}
	was, is := &before.uses, &after.uses
	n := len(is.followers)
	if n == 0 || n != len(was.followers) {
		return
	}
	leader, followers := micros(is.leader.CPU-was.leader.CPU), 0.0
	for i := range is.followers {
		followers += micros(is.followers[i].CPU-was.followers[i].CPU) / float64(n)
	}
	s[LeaderCPU], s[FollowerCPU] = leader/commands, followers/commands
	s[LeaderLoad], s[FollowerLoad] = 100*leader/micros(took), 100*followers/micros(took)
}

// weigh adds the members' memory, while the clients work.
func (t *braidTarget) weigh(ctx context.Context, s Sample, leader *member) error {
	u, err := t.uses(ctx, leader, true)
	n := float64(len(u.followers))
	if err != nil || n == 0 {
		return err
	}
	s[LeaderHeap], s[LeaderResident] = mib(u.leader.Heap), mib(u.leader.Resident)
	heap, resident := uint64(0), uint64(0)
	for i := range u.followers {
		heap, resident = heap+u.followers[i].Heap, resident+u.followers[i].Resident
	}
	s[FollowerHeap], s[FollowerResident] = mib(heap)/n, mib(resident)/n
	return nil
}

// addCPU adds the CPU time of a given number of commands.
func (s Sample) addCPU(used time.Duration, commands float64) {
	s[CPU], s[PerCPU] = micros(used)/commands, commands/used.Seconds()
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
