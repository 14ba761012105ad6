package bench

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/braidlog/braid"
)

// The bitmap must equal a map, in any order.
func TestBitmapAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var b bitmap
	want := map[uint64]bool{}
	const n = 300_000
	for i := range uint64(n) {
		v := i
		if r.IntN(10) == 0 {
			v = uint64(r.IntN(int(i) + 1000)) // out of order, or repeated
		}
		if v%50_021 == 0 {
			continue // some never come
		}
		if fresh := b.set(v); fresh == want[v] {
			t.Fatalf("set(%d) says new: %v, but it had been set: %v", v, fresh, want[v])
		}
		want[v] = true
	}
	var missing []uint64
	for v := range uint64(n) {
		if b.has(v) != want[v] {
			t.Fatalf("has(%d) is %v", v, b.has(v))
		}
		if !want[v] {
			missing = append(missing, v)
		}
	}
	if count, first := b.missing(n, nil); count != len(missing) || first != missing[0] {
		t.Errorf("%d are missing from %d on, want %d from %d on", count, first, len(missing), missing[0])
	}
	if count, _ := b.missing(n, missing); count != 0 {
		t.Errorf("%d are missing although all may be", count)
	}
}

func TestBitmapForgetsWhatIsComplete(t *testing.T) {
	var b bitmap
	for i := range uint64(1_000_000) {
		b.set(i)
	}
	if len(b.Words) > 2048 {
		t.Errorf("a million numbers in order need %d words", len(b.Words))
	}
}

func command(sender int, seq uint64) []byte {
	c := make([]byte, 16)
	putIdentity(c, sender, seq)
	return c
}

func TestMachineSnapshot(t *testing.T) {
	a, b := NewMachine(2), NewMachine(2)
	for i := range uint64(100) {
		a.ApplyAll([][]byte{command(1, i)})
	}
	s, err := a.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	a.ApplyAll([][]byte{command(0, 0)}) // not in the snapshot
	var buf bytes.Buffer
	if err := s.WriteTo(context.Background(), &buf); err != nil {
		t.Fatal(err)
	}
	if err := b.Restore(&buf); err != nil {
		t.Fatal(err)
	}
	if count, _ := b.Digest(); count != 100 {
		t.Fatalf("restored %d commands, want 100", count)
	}
	if err := b.Apply([]braid.Command{{Data: command(0, 0)}}); err != nil {
		t.Fatal(err)
	}
	countA, hashA := a.Digest()
	countB, hashB := b.Digest()
	if countA != countB || hashA != hashB {
		t.Errorf("after a snapshot: %d commands, hash %x; before: %d, %x", countB, hashB, countA, hashA)
	}
	if err := b.Restore(strings.NewReader("garbage")); err == nil {
		t.Error("restored garbage")
	}
}

func TestJudge(t *testing.T) {
	senders := []*sender{{id: 0, seq: 3, unknown: []uint64{1}}, {id: 1, seq: 1}}
	for _, c := range []struct {
		name     string
		commands [][]byte
		want     string // "" is good
	}{
		{"all there", [][]byte{command(0, 0), command(1, 0), command(0, 1), command(0, 2)}, ""},
		{"without the unknown one", [][]byte{command(0, 0), command(1, 0), command(0, 2)}, ""},
		{"one lost", [][]byte{command(0, 0), command(1, 0)},
			"lacks 1 acknowledged commands of sender 0, the first of which is 2"},
		{"one twice", [][]byte{command(0, 0), command(1, 0), command(0, 2), command(0, 0)}, "1 commands more than once"},
		{"one of nobody", [][]byte{command(0, 0), command(1, 0), command(0, 2), command(7, 0)},
			"1 commands that nobody sent"},
		{"one too short", [][]byte{command(0, 0), command(1, 0), command(0, 2), {1}}, "1 commands that nobody sent"},
	} {
		m := NewMachine(2)
		m.ApplyAll(c.commands)
		got := strings.Join(m.judge(0, senders), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: judged %q, want %q", c.name, got, c.want)
		}
	}
}

// By key, only the order of commands with the same key counts.
func TestMachineByKey(t *testing.T) {
	apply := func(commands ...string) *Machine {
		m := NewMachine(1)
		m.ByKey(func(command []byte) uint64 { return uint64(command[7]) })
		for _, c := range commands {
			if err := m.Apply([]braid.Command{{Data: []byte(c)}}); err != nil {
				t.Fatal(err)
			}
		}
		return m
	}
	const a1, a2, b1 = "1\x00\x00\x00\x00\x00\x00\x00", "2\x00\x00\x00\x00\x00\x00\x00", "3\x00\x00\x00\x00\x00\x00\x01"
	m := apply(a1, a2, b1)
	count, hash := m.Digest()
	if c, h := apply(a1, b1, a2).Digest(); c != 3 || c != count || h != hash {
		t.Errorf("another order of two keys: %d commands, hash %x; want %d, %x", c, h, count, hash)
	}
	for _, other := range []*Machine{apply(a2, a1, b1), apply(a1, a2), apply(a1, a2, a1)} {
		if _, h := other.Digest(); h == hash {
			t.Error("other commands, or another order of a key, with the same hash")
		}
	}
	s, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := s.WriteTo(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	restored := apply()
	if err := restored.Restore(&out); err != nil {
		t.Fatal(err)
	}
	if c, h := restored.Digest(); c != count || h != hash {
		t.Errorf("restored: %d commands, hash %x; want %d, %x", c, h, count, hash)
	}
}
