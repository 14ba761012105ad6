package wal

import "math"

// What Commits does while the disk is full: it waits for room. Nothing that was submitted
// fails, and nothing is told to be durable, so to whoever submits it is a disk that stands
// still. Meanwhile it gives back what may go.

// unwritten are the jobs of the batch whose records are not in the log yet.
func (c *Commits) unwritten() []job {
	if c.stage == StageSync {
		return c.rest[c.fit:]
	}
	return c.rest
}

// relieve gives back what is not needed any more: bodies that were released, and the entries
// of which a compaction that waits behind what cannot be written says so. That one of the two
// finds no room does not hinder the other.
func (c *Commits) relieve() error {
	if err := c.relieveBodies(); err != nil && roomMissing(err) == nil {
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

// earlyCuts lists up to where each instance's log may be cut before the jobs before the
// compaction are written: below everything that they still write of the instance.
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

// lowerBy notes the lowest index of each instance that records write.
func lowerBy(lowest map[uint32]uint64, records []Record) {
	for k := range records {
		r := &records[k]
		at, ok := lowest[r.Instance]
		switch {
		case r.Kind == KindBase:
			at = 1 // the log begins anew with it
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

// compactEarly is Compact of no more than the log has of an instance.
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
