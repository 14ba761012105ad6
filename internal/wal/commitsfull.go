package wal

import "math"

// While the disk is full, Commits waits for space. Nothing that was submitted fails before Close, and nothing is
// reported as durable. To submitters it is like a stalled disk. Meanwhile Commits frees what is not needed.

// unwritten returns the jobs of the batch whose records are not in the log yet.
func (c *Commits) unwritten() []job {
	if c.stage == StageSync {
		return c.rest[c.fit:]
	}
	return c.rest
}

// relieve frees what is no longer needed. That is released bodies, and entries below compactions in the queue after a
// job that cannot be written. If the bodies have no space for this, relieve still continues with the log.
func (c *Commits) relieve() error {
	if err := c.relieveBodies(); err != nil && spaceMissing(err) == nil {
		return err
	}
	for _, cut := range c.earlier {
		if err := c.log.compactEarly(cut.instance, cut.index); err != nil {
			return err
		}
	}
	return c.log.Sync()
}

func (c *Commits) relieveBodies() error {
	if c.bodies == nil {
		return nil
	}
	if err := c.bodies.Sync(); err != nil {
		return c.log.fail("sync of bodies", err)
	}
	if _, err := c.bodies.Compact(); err != nil {
		return c.log.fail("tidy", err)
	}
	return nil
}

// earlyCuts returns the index up to which each instance's log may be compacted before the jobs ahead of the
// compaction are written. It is below every entry that these jobs still write for the instance.
func earlyCuts(lists ...[]job) (cuts []job) {
	lowest := map[uint32]uint64{}
	for _, jobs := range lists {
		for i := range jobs {
			j := &jobs[i]
			if !j.compact {
				lowerBy(lowest, j.records)
				continue
			}
			below, ok := lowest[j.instance]
			if !ok {
				below = math.MaxUint64
			}
			if index := min(j.index, below-1); index > 0 {
				cuts = append(cuts, job{instance: j.instance, index: index})
			}
		}
	}
	return cuts
}

// lowerBy records the lowest index that the records write for each instance.
func lowerBy(lowest map[uint32]uint64, records []Record) {
	for k := range records {
		r := &records[k]
		at, ok := lowest[r.Instance]
		switch {
		case r.Kind == KindBase:
			at = 1 // the log starts again with this base
		case r.Kind == KindEntry && ok:
			at = min(at, r.Index)
		case r.Kind == KindEntry:
			at = r.Index
		default:
			continue
		}
		lowest[r.Instance] = at
	}
}

// compactEarly is Compact, up to the last entry that the log has of an instance and no further.
func (l *Log) compactEarly(instance uint32, index uint64) error {
	l.mu.Lock()
	in := l.index.find(instance)
	if in == nil || !in.begun() {
		l.mu.Unlock()
		return nil
	}
	index = min(index, in.next()-1)
	l.mu.Unlock()
	return l.Compact(instance, index)
}
