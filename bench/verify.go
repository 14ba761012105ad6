package bench

import (
	"context"
	"fmt"
	"time"
)

// convergeTimeout is logRun.convergeIn outside of tests.
const convergeTimeout = time.Minute

// verify waits until all members have applied the same number of commands, and returns the violations; nil: none.
func (r *logRun) verify(ctx context.Context) []string {
	acked := uint64(0)
	for _, s := range r.g.senders {
		acked += s.seq - uint64(len(s.unknown))
	}
	bad := r.converge(ctx, acked)
	for i, m := range r.machines {
		bad = append(bad, m.judge(i, r.g.senders)...)
	}
	return bad
}

// converge waits until all members have applied the same number of commands, at least the acknowledged ones, and
// compares them.
func (r *logRun) converge(ctx context.Context, acked uint64) []string {
	ctx, cancel := context.WithTimeout(ctx, r.convergeIn)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		counts, hashes := r.digests()
		if equal(counts) && counts[0] >= acked {
			if !equal(hashes) {
				return []string{fmt.Sprintf("the members applied %d commands each, but not the same ones or not in "+
					"the same order: hashes %x", counts[0], hashes)}
			}
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return []string{fmt.Sprintf("%d commands were acknowledged, but %v after the load the members have "+
				"applied %d", acked, r.convergeIn, counts)}
		}
	}
}

func (r *logRun) digests() (counts, hashes []uint64) {
	for _, m := range r.machines {
		count, hash := m.Digest()
		counts, hashes = append(counts, count), append(hashes, hash)
	}
	return counts, hashes
}

func equal(values []uint64) bool {
	for _, v := range values {
		if v != values[0] {
			return false
		}
	}
	return true
}

// judge compares a member's applied commands with the senders' records.
func (m *Machine) judge(member int, senders []*sender) (bad []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.join()
	if m.s.Duplicates > 0 {
		bad = append(bad, fmt.Sprintf("member %d applied %d commands more than once", member+1, m.s.Duplicates))
	}
	if m.s.Malformed > 0 {
		bad = append(bad, fmt.Sprintf("member %d applied %d commands that nobody sent", member+1, m.s.Malformed))
	}
	for _, s := range senders {
		if n, first := m.s.Seen[s.id].missing(s.seq, s.unknown); n > 0 {
			bad = append(bad, fmt.Sprintf("member %d lacks %d acknowledged commands of sender %d, the first of which "+
				"is %d", member+1, n, s.id, first))
		}
	}
	return bad
}

// join merges the groups into the machine, to be verified together. A command that two groups applied is a duplicate.
func (m *Machine) join() {
	if m.groups == nil {
		return
	}
	m.s = tally{Seen: make([]bitmap, len(m.s.Seen))}
	for _, g := range m.groups {
		g.mu.Lock()
		m.s.Count, m.s.Duplicates, m.s.Malformed = m.s.Count+g.s.Count, m.s.Duplicates+g.s.Duplicates,
			m.s.Malformed+g.s.Malformed
		for sender := range g.s.Seen {
			seen := &g.s.Seen[sender]
			for n := range (seen.Base + uint64(len(seen.Words))) * 64 {
				if seen.has(n) && !m.s.Seen[sender].set(n) {
					m.s.Duplicates++
				}
			}
		}
		g.mu.Unlock()
	}
}

// missing counts the numbers below end that are neither in the set nor permitted to be missing, and returns the first
// of them.
func (b *bitmap) missing(end uint64, allowed []uint64) (n int, first uint64) {
	excused := make(map[uint64]struct{}, len(allowed))
	for _, a := range allowed {
		excused[a] = struct{}{}
	}
	for i := b.Base * 64; i < end; i++ {
		if b.has(i) {
			continue
		}
		if _, ok := excused[i]; ok {
			continue
		}
		if n == 0 {
			first = i
		}
		n++
	}
	return n, first
}
