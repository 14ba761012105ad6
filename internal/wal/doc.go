// Package wal is the durable log of one member: all instances write to it, so that one fdatasync covers everything
// that was submitted during the last one.
//
// It decides where bytes are written, when they are durable, which of them are valid after a crash,
// and when their space is reused. A record is an instance, a kind, an index and opaque bytes.
//
// How to read it:
//
//	format.go    the bytes of a segment: header, batches, records
//	segment.go   files: preallocate, write, recycle
//	index.go     where the live records of each instance are
//	log.go       Open, Append, Sync: the synchronous core (no goroutine, clock or chance)
//	recover.go   from files to a log: what is torn, what is damaged
//	gap.go       which damage is skipped, because a snapshot covers what was there
//	mark.go      a second record of how far the files were durable
//	read.go      ReadEntry, Replay
//	cells.go     numbered places next to an instance's entries
//	compact.go   freeing space, removing an instance
//	scrub.go     reading everything again, to find damage early
//	commits.go   group commit, as a sequence of steps (no goroutine, lock or clock)
//	commitsfull.go  waiting for space on a full disk
//	writer.go    a goroutine that executes the steps, for production
//	inspect.go   listing the records of files without opening the log
//
// The bodies:
//
//	bodyformat.go   the bytes of a file of bodies, and reading their heads
//	bodyfile.go     files: preallocate, reuse, read
//	bodies.go       Append, Sync, Read
//	bodyopen.go     from files to bodies
//	bodycompact.go  Release, Retain, Compact, Verify
//	bodyinspect.go  listing the bodies of files without opening the store
//
// # What is on disk
//
// A log is a sequence of segments of a fixed size, numbered without gaps. A segment is filled from
// its first byte to its last before the next one is started. A batch is the output of one flush: a
// header and records, each with a CRC-32C. Checksums are seeded with the log's identity, the
// segment's number and the incarnation (the count of Opens), so that bytes left over from a
// recycled segment, from another log or from a torn batch of an earlier incarnation are never taken
// for records.
//
// # Torn or damaged
//
// After a crash, any part of the bytes that were not synced may be on disk. The header of a batch has the number of
// the last batch known to be durable when it was written. So a bad batch b is damage if a later batch records that b
// was durable. The batch that was synced last has nothing after it. Therefore a separate file, the mark (mark.go),
// records after each sync how far the log was durable. It is written before the sync is acknowledged. A bad batch
// that it covers is damage; a bad batch that it does not cover is torn, and the log is truncated there.
//
// The mark is synced only when the log is idle and when it is closed. So it survives a crash of the
// process immediately, and a power failure as soon as the kernel has written it back. One case
// remains: power is lost while the log is busy, and the batch that was synced last is also
// corrupted. Then that batch is truncated although it was acknowledged. To close this gap, each
// batch would have to wait for a second sync, of the mark: 0.14 ms would become 0.27 to 0.36 ms (64
// bytes, p50, 2 shared cores). Without a sync the mark costs a write of 32 bytes, which is less
// than can be measured.
//
// A process that dies may leave batches that are in the machine's memory only. Open continues behind them, so
// it syncs them first. If it was a failed sync that ended the process, they may not be dirty there any more, and a sync
// would succeed without writing them. So Open first writes again what the mark does not cover. So it is with bodies.
//
// The search for later batches leaves out what was never written, if the file system can tell (vfs.NextWritten): these
// bytes are zeros, and no batch begins in them. Batches themselves are always read.
//
// Bodies have a mark of their own for the file that is being written.
//
// # Damage that is skipped
//
// If a snapshot covers entries (Options.Cover), a log with a damaged batch opens if nothing in that batch can be
// needed. The content of the batch is unknown, but the batches after it are evidence. For each instance there must be
// a later state, which replaces the one that may be lost, and a later entry x, which shows that all entries before x
// had been written; and a snapshot must cover all of these. Otherwise the log does not open, so no vote and no entry
// is forgotten (gap.go). A damaged first page of a segment loses nothing, because each batch has its own position;
// the page is rewritten.
//
// Batches are not padded to sectors: the next batch rewrites the sector that the last one ended
// in, with the same bytes up to there. So a write that is torn within a sector leaves them as they
// were. A disk that loses a whole sector answers with a read error, which stops recovery.
//
// # Cells
//
// Not every protocol decides in the order of its log. Next to its entries an instance may have cells. Each has a
// number, and the bytes that were last written to it, until it is emptied. Entries and bases do not change cells, and
// one sync covers all of them.
//
// Their contents are opaque. So no later batch shows which cells were in a damaged one, and no snapshot covers them.
// A log that may have cells (Cover.Cells) does not open with such a batch, as if the last state had been in it. A
// running member repairs this, as it repairs a damaged state: all cells are in memory too, and Rewrite rewrites them,
// followed by a mark with their first place. Damage before that place costs no cell.
//
// # Removed instances
//
// An instance without entries still has its last state and its base, which are rewritten whenever
// their segment is reused. Remove deletes these too. Nothing of the instance is left then, so it
// may be called only when no member needs the instance's state any more.
//
// # Bodies
//
// The large bytes of entries are stored next to the log, so that they can be replaced by another form, and dropped in
// any order. They are written once, without a copy, and synced before the log's records that refer to them. So a
// group commit with bodies takes two syncs. After a crash there may be a body that the log does not know, or a body
// of an entry that replaced one that the log still has. The body's term distinguishes them.
//
// Each Open begins a new file, and a file is removed as a whole. A body that was dropped or replaced may reappear
// after a crash, but never in place of a newer one: bodies are numbered, and a copy keeps its number. Open truncates
// the last file at the first record that may not be durable and is incomplete, and closes it there with a record.
//
// 1 MiB and a sync, per body, in the mean: 1.9 ms into new files, 1.4 ms into files reused; 16 KiB: 0.36 ms and 0.18
// ms (2 shared cores, ext4; compare within a line only).
//
// # Full disks
//
// Space is reserved when a file is made. So a full disk is detected there, and never within a batch (on file systems
// that cannot reserve space, in any write). Unlike a failed sync, this leaves no doubt about what is on disk: the log
// stays open, and the caller retries. The last part of each segment is reserved for compaction and starts. So a log
// without space for entries can still be compacted and opened.
//
// A process without a descriptor for another file is treated like a full disk: nothing was done. The log keeps its
// directory open, so that only making a file takes a descriptor, and a log that has its next file continues without. A
// call that a signal interrupts is made again.
//
// # What it costs
//
// Blocks that were written before are cheap to overwrite; blocks of a growing or only fallocated file make each
// fdatasync commit metadata, and on disks that allocate on first write they are slow themselves. Measured in
// alternation on ext4, write + fdatasync, p50 (2 shared cores, so compare within a line only):
//
//	bytes     file overwritten   this log   file growing
//	100             170 µs        163 µs        245 µs
//	4,000           198 µs        208 µs        279 µs
//	16,000          253 µs        271 µs        467 µs
//	1 MiB         1,482 µs      1,851 µs      8,084 µs   (segments reused)
//
// Therefore small batches write zeros ahead in new files, and files are reused, as many as the log had at its
// largest. A record costs about 60 ns of CPU in addition to copying and its checksum, and no memory except for 12
// bytes of index. A cell also takes the memory of its bytes, which it shares with its owner.
//
// May import: internal/sys.
package wal
