package paper

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
)

// A share of the keys is the hot one, and no two members have another common key, nor a common group.
func TestKeysOfCommands(t *testing.T) {
	const n = 10_000
	w := Work{KeySpace: 12_000, Hot: 0.25}
	users, hot := map[uint64]int{}, 0
	for client := range 12 {
		command, m := make([]byte, 16), w.mix(client, 6)
		for range n / 10 {
			o := m.next(command)
			key := binary.LittleEndian.Uint64(command[8:])
			if len(o.Keys) != 1 || o.Keys[0] != key || keyIn(command) != key {
				t.Fatalf("key %d, options %+v", key, o)
			}
			if key == hotKey {
				hot++
				continue
			}
			group, _ := braid.GroupOf(o.Keys, keyGroups)
			if by, ok := users[uint64(group)]; ok && by != client%6 {
				t.Fatalf("members %d and %d use group %d", by, client%6, group)
			}
			users[uint64(group)] = client % 6
		}
	}
	if hot < 2700 || hot > 3300 || len(users) != keyGroups {
		t.Errorf("%d of 12,000 commands touch the hot key, and others are of %d groups", hot, len(users))
	}
	if key := keyIn(binary.LittleEndian.AppendUint64(nil, 7)); key != bench.KeyOf(7) {
		t.Errorf("key %d of a command that has none", key)
	}
}

// Clusters that order only commands of a key agree on each order, in closed loops and at a rate.
func TestRealKeys(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{seriesEPaxos, seriesWPaxos} {
		s := issSetup(protocol, 3)
		s.Heartbeat = 100 * time.Millisecond
		target := openReal(t, s)
		for _, w := range []Work{{Clients: 12}, {Rate: 500}} {
			w.For, w.At, w.Payload, w.KeySpace, w.Hot = 600*time.Millisecond, AtMembers, 16, 12_000, 0.5
			if f := runReal(t, target, w); f[Throughput] <= 0 || f[PerCPU] <= 0 {
				t.Errorf("%s: %v", protocol, f)
			}
			if err := target.Check(t.Context()); err != nil {
				t.Errorf("%s: %v", protocol, err)
			}
		}
	}
}
