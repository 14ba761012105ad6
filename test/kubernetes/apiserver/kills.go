package main

import (
	"context"
	"fmt"
	"time"

	"github.com/braidlog/braid/bench"
)

// killer ends members of the store, one after the other, as crashes do.
type killer struct {
	servers *bench.Servers
	members int
	down    time.Duration // from the kill of a member to its restart
	pause   time.Duration // from the return of a member to the next kill

	kills, ofLeader int
}

// run kills until ending ends; the last member that was killed has returned then. In each turn every member is killed
// once, first the one that leads.
func (k *killer) run(ctx, ending context.Context) error {
	var turn []int
	for sleep(ending, k.pause) {
		leader := k.servers.Leader(ctx)
		if len(turn) == 0 {
			turn = k.turn(leader)
		}
		member := turn[0]
		turn = turn[1:]
		if err := k.kill(ctx, member); err != nil {
			return err
		}
		if k.kills++; member == leader {
			k.ofLeader++
		}
	}
	return nil
}

// turn returns all members, with the leader as the first if there is one.
func (k *killer) turn(leader int) (turn []int) {
	for i := range k.members {
		turn = append(turn, (max(0, leader)+i)%k.members)
	}
	return turn
}

// kill kills a member, starts it again after a time, and waits until all members serve.
func (k *killer) kill(ctx context.Context, member int) error {
	k.servers.Kill(member)
	sleep(ctx, k.down)
	if err := k.servers.Restart(member); err != nil {
		return err
	}
	if err := k.servers.Ready(ctx); err != nil {
		return fmt.Errorf("after member %d was killed and started again: %w", member+1, err)
	}
	return nil
}
