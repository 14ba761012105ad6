package wal

import (
	"cmp"
	"slices"
)

// compactStep is the number of bytes that one call of Compact copies, up to the end of a body.
const compactStep = 4 << 20

// Release indicates that an entry's body is no longer needed. It is safe for concurrent use; the next Sync and
// Compact free the space. Writer.Tidy makes sure that there are such calls.
func (b *Bodies) Release(instance uint32, index uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.index[bodyKey{instance, index}]; h != nil {
		b.drop(h)
	}
}

// Retain is called once, after Open and before the first Append. It selects the bodies that are needed. The others
// were dropped, or replaced in the log, before the last incarnation ended. If bodies of several terms were found for
// an index, keep is asked about each, beginning with the one appended last, until it keeps one: the log may not have
// the entry of the last.
func (b *Bodies) Retain(keep func(Body) bool) {
	for _, versions := range b.versions() {
		wanted := slices.IndexFunc(versions, func(h *held) bool { return keep(h.meta) })
		b.mu.Lock()
		for i, h := range versions {
			switch {
			case i == wanted:
			case h.older:
				b.forget(h)
			default:
				b.drop(h)
			}
		}
		if wanted >= 0 {
			h := versions[wanted]
			wasOlder := h.older
			h.older = false
			if wasOlder {
				b.place(bodyKey{h.meta.Instance, h.meta.Index}, h)
			}
		}
		b.mu.Unlock()
	}
	b.mu.Lock()
	b.older = nil
	b.mu.Unlock()
}

// versions lists the bodies of each index, in order, the last appended one first.
func (b *Bodies) versions() (all [][]*held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	byKey := make(map[bodyKey]int, len(b.index))
	for key, h := range b.index {
		byKey[key] = len(all)
		all = append(all, []*held{h})
	}
	for _, h := range b.older {
		at := byKey[bodyKey{h.meta.Instance, h.meta.Index}]
		all[at] = append(all[at], h)
	}
	for _, versions := range all {
		slices.SortFunc(versions, func(x, y *held) int { return cmp.Compare(y.number, x.number) })
	}
	slices.SortFunc(all, func(x, y []*held) int {
		return cmp.Or(cmp.Compare(x[0].meta.Instance, y[0].meta.Instance), cmp.Compare(x[0].meta.Index, y[0].meta.Index))
	})
	return all
}

// mayGo reports whether a file may be dropped once it has no stored bodies. The caller holds mu.
func (b *Bodies) mayGo(f *bodyFile) bool { return f != b.current && (b.retained || !f.lost) }

// freeFiles drops the files without live bodies. The bodies that replaced theirs are durable.
func (b *Bodies) freeFiles() error {
	b.mu.Lock()
	var dead []*bodyFile
	for _, f := range b.files {
		if f.live == 0 && b.mayGo(f) {
			dead = append(dead, f)
		}
	}
	if len(dead) > 0 {
		b.maxFree = len(b.files)
		b.files = slices.DeleteFunc(b.files, func(f *bodyFile) bool { return slices.Contains(dead, f) })
	}
	b.mu.Unlock()
	for _, f := range dead {
		if f == b.victim {
			b.victim = nil
		}
		if err := b.retireFile(f); err != nil {
			return err
		}
	}
	return nil
}

// Compact copies some live bodies out of a file most of which is dead, so that it can be dropped: a few MiB for each
// call, and nothing if there is no such file. The copies are made durable by the next Sync, which removes the file
// when it is empty. It reports whether there is more to do. A file with a damaged body stays until the body is
// replaced or released.
func (b *Bodies) Compact() (more bool, err error) {
	if b.err != nil {
		return false, b.err
	}
	if b.victim == nil {
		b.victim, b.at = b.pick(), 0
	}
	for copied := int64(0); b.victim != nil; {
		h := b.nextLive()
		if h == nil {
			b.victim = nil
			return true, nil // Sync frees it, and there may be another
		}
		if copied >= compactStep {
			return true, nil
		}
		copied += h.size()
		if err := b.move(h); err != nil {
			b.victim = nil // without space it is tried again later
			if err = b.fail("compact", err); spaceMissing(err) != nil {
				err = nil
			}
			return false, err
		}
	}
	b.scratch = nil
	return false, nil
}

// pick finds the file with the fewest live bytes among those most of which is dead.
func (b *Bodies) pick() (victim *bodyFile) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.files {
		if b.mayGo(f) && f.live > 0 && f.live < f.capacity/2 && !f.damaged() && (victim == nil || f.live < victim.live) {
			victim = f
		}
	}
	return victim
}

func (f *bodyFile) damaged() bool {
	for _, h := range f.records {
		if h.live && h.bad != nil {
			return true
		}
	}
	return false
}

func (b *Bodies) nextLive() *held {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ; b.at < len(b.victim.records); b.at++ {
		if h := b.victim.records[b.at]; h.live && !h.older {
			b.at++
			return h
		}
	}
	return nil
}

// move copies a body to the end.
func (b *Bodies) move(h *held) error {
	data, err := b.readHeld(h, b.scratch)
	if err != nil {
		// It stays in place, and so does its file.
		b.note(h, err)
		b.victim = nil
		return nil
	}
	b.scratch = data
	body := h.meta
	body.Bytes = data
	moved, err := b.put(&body, h.number)
	if err != nil {
		return err
	}
	b.mu.Lock()
	if h.live {
		b.hold(moved)
	}
	b.mu.Unlock()
	return nil
}

// Damaged returns the damage that Open found: heads of bodies, with or without the rest.
func (b *Bodies) Damaged() []*CorruptError {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*CorruptError(nil), b.damage...)
}

// Verify reads the stored body of an entry. It returns the error of Read, with one difference: if bodies were lost
// and the owners are unknown, it returns a *CorruptError for each body from before, because one of the lost ones may
// have replaced it. Recovery calls it before the first Append, for acknowledged bodies that may still be replaced.
// For scrubbing Read is enough.
func (b *Bodies) Verify(instance uint32, index uint64) error {
	h, gathered, err := b.acquire(instance, index)
	if err != nil || gathered != nil {
		return err
	}
	err = b.verifyHeld(h)
	b.unref(h.file)
	b.note(h, err)
	if err == nil && b.lost != nil && h.number <= b.opened {
		return b.lost
	}
	return err
}

func (b *Bodies) verifyHeld(h *held) error {
	if _, err := b.readHeld(h, nil); err != nil {
		return err
	}
	want := h.head()
	for _, at := range []int64{h.offset, want.tailAt()} {
		var page [bodyHeadSize]byte
		if _, err := readFull(h.file.file, page[:], at); err != nil {
			return &ReadError{"read", b.path(h.file.seq, bodySuffix), err}
		}
		got, ok := decodeBodyHead(page[:], h.file.salt, at, h.file.capacity)
		if !ok || got.number != h.number {
			return b.corrupt(h.file, at, "body %d of instance %d: its head or tail is damaged", h.meta.Index, h.meta.Instance)
		}
	}
	return nil
}
