package wal

import (
	"time"

	"github.com/braidlog/braid/internal/mutant"
)

const (
	// sealAfter is how long a log is idle before it is sealed.
	sealAfter = 100 * time.Millisecond
	// tidyAfter is the pause between two pieces of background work of an idle log.
	tidyAfter = 5 * time.Millisecond
	// spaceAfter is the pause between two attempts to find space on a full disk.
	spaceAfter = 50 * time.Millisecond
	// forever is a pause that ends only when something is submitted, or bodies are released.
	forever time.Duration = -1
)

// Background runs a function soon, perhaps concurrently. It returns a function that waits until that function has run.
type Background func(func()) (wait func())

// Commits is group commit on a Log and its Bodies, as a sequence of steps. It takes everything that instances
// submitted, makes it durable with one sync of the Log and one of the Bodies, and calls the submitters' done
// functions. It has no goroutine, no lock and no clock. Its caller calls Gather. If Gather returns true, it calls
// Step. If Gather returns false, it waits: after the time of Pause it calls Step, after a submission it calls Gather
// again. Writer does so in a goroutine.
//
// The methods of Log and Bodies that are safe for concurrent use remain so. Only Step may call the others.
//
// Submit, Compact, Rewrite, Tidy, Close, Queued and Gather use the queue. Step, Busy, Syncs, Pause and Stats use the
// batch in progress. Gather uses both. An executor with several submitting goroutines holds a lock around the methods
// that use the queue.
type Commits struct {
	log        *Log
	bodies     *Bodies // nil: records have no bodies
	background Background

	// The queue.
	queue  []job
	spare  []job // the other of two buffers; begin swaps them
	queued int64 // bytes in queue
	tidies bool  // Tidy was called
	closed bool

	// The batch in progress. rest is the end of batch: the jobs that are not answered yet. The first fit jobs of rest
	// are made durable in this round. In a stage that iterates over these jobs, at is the next job and part is its next
	// record. begun is the number of records of the first job of rest that are in the log already: the disk got full
	// after them, in the round before.
	//
	//	fit ≤ len(rest) ≤ len(batch); at ≤ fit
	stage     Stage
	batch     []job
	rest      []job
	fit       int
	at, part  int
	begun     int
	pause     time.Duration // before the next step
	ending    bool          // Close was called: it no longer waits for space
	full      *FullError    // why the stage waits for space; nil: it does not
	seen      int           // length of the queue at the last attempt to find space
	earlier   []job         // compactions that may run at once, to free space
	gaveUp    error         // the error after which nothing is written
	completed CommitStats

	// Mutant is for tests. Commits knows bodies-after-log, answer-before-sync and cut-before-records.
	Mutant mutant.Name
}

// job is one call of Submit, Compact or Rewrite.
type job struct {
	records  []Record
	done     func(error)
	bytes    int
	compact  bool
	rewrite  bool
	instance uint32
	index    uint64
}

// Stage is what Step does next.
type Stage uint8

// The stages, in the order in which a batch goes through them.
const (
	StageIdle     Stage = iota // nothing is in progress: seal the files and free space in them
	StageBodies                // write the bodies of records
	StageBodySync              // make them durable
	StageRecords               // write the records
	StageSync                  // make them durable
	StageAnswer                // call the submitters' done functions
	StageTidy                  // prepare the next files, and free space in files
)

var stageNames = [...]string{"idle", "bodies", "sync of bodies", "records", "sync", "answer", "tidy"}

func (s Stage) String() string { return stageNames[s] }

// CommitStats are counters since the start.
type CommitStats struct {
	Submits uint64 // calls of Submit that are durable or failed
	Records uint64
	Bytes   uint64 // of records' parts and bodies, without the records' headers
	Syncs   uint64
	// PendingBytes are the bytes of the batch that is in progress.
	PendingBytes int64
	// Failed is the error that shut the log; nil: it is open.
	Failed error
	// Full is the error for which the current step waits for disk space; nil: it does not wait.
	Full *FullError
}

// NewCommits returns group commit on a log and its bodies. From then on others may call only those of their methods
// that are safe for concurrent use. bodies may be nil if no record has a body.
func NewCommits(l *Log, bodies *Bodies, background Background) *Commits {
	return &Commits{log: l, bodies: bodies, background: background, pause: sealAfter}
}

// Submit submits records and their bodies; see Writer.Submit. After Close it returns false, and done will not be
// called.
func (c *Commits) Submit(records []Record, done func(error)) bool {
	j := job{records: records, done: done}
	for i := range records {
		j.bytes += records[i].size()
		if body := records[i].Body; body != nil {
			j.bytes += len(body.Bytes)
		}
	}
	return c.add(j)
}

// Compact is Log.Compact, done in the order of submission. After Close it returns false.
func (c *Commits) Compact(instance uint32, index uint64) bool {
	return c.add(job{compact: true, instance: instance, index: index})
}

// Rewrite is Log.Rewrite, done in the order of submission. After Close it returns false.
func (c *Commits) Rewrite(instance uint32, done func(error)) bool {
	return c.add(job{rewrite: true, instance: instance, done: done})
}

// Tidy indicates that bodies were released, after Bodies.Release. It makes an idle log free their files, which
// otherwise does nothing until the next submission.
func (c *Commits) Tidy() { c.tidies = true }

func (c *Commits) add(j job) bool {
	if c.closed {
		return false
	}
	c.queue = append(c.queue, j)
	c.queued += int64(j.bytes)
	return true
}

// Queued returns the number of queued jobs, and the bytes of their records and bodies.
func (c *Commits) Queued() (jobs int, bytes int64) { return len(c.queue), c.queued }

// Close indicates that nothing more is submitted, and that Commits no longer waits for space on a full disk.
// Submitted records still become durable, or fail.
func (c *Commits) Close() { c.closed = true }

// Closed reports whether Close was called and everything that was submitted is done.
func (c *Commits) Closed() bool { return c.closed && len(c.queue) == 0 && c.stage == StageIdle }

// Gather takes the queued jobs, if no batch is in progress. It reports whether Step is to be called at once.
func (c *Commits) Gather() bool {
	c.ending = c.closed
	switch {
	case c.full != nil:
		if c.ending || len(c.queue) != c.seen {
			c.pause = 0
		}
		c.seen = len(c.queue)
		c.earlier = earlyCuts(c.unwritten(), c.queue)
	case c.stage == StageIdle && len(c.queue) > 0:
		c.begin()
	case c.stage == StageIdle && c.tidies && c.pause == forever && c.log.err == nil:
		c.pause = 0
	}
	if c.stage == StageIdle {
		c.tidies = false // the next step comes after the release
	}
	return c.pause == 0
}

// Busy reports whether a step is in progress that does not wait for space.
func (c *Commits) Busy() bool { return c.stage != StageIdle && c.full == nil }

// More reports whether the batch has jobs that come after this round.
func (c *Commits) More() bool { return len(c.rest) > c.fit }

// Stage is what Step does next.
func (c *Commits) Stage() Stage { return c.stage }

// Syncs reports whether the next Step is a sync, which takes a while.
func (c *Commits) Syncs() bool {
	switch c.stage {
	case StageBodySync:
		return c.bodies.dirty
	case StageSync:
		return c.log.dirty || len(c.log.pieces) > 0
	}
	return false
}

// Pause is how long the executor waits before the next Step if Gather returns false. If it is negative,
// the executor waits until something is submitted or bodies are released.
func (c *Commits) Pause() time.Duration { return c.pause }

// Stats returns the counts up to now.
func (c *Commits) Stats() CommitStats { return c.completed }

func (c *Commits) begin() {
	c.batch = c.queue
	c.queue, c.spare = c.spare[:0], c.batch
	c.completed.PendingBytes, c.queued = c.queued, 0
	c.rest, c.pause = c.batch, 0
	c.round()
}

// round starts the next round for the rest of the batch.
func (c *Commits) round() {
	c.stage, c.fit, c.at, c.part = StageBodies, len(c.rest), 0, 0
	if c.gaveUp != nil {
		c.failRest(c.gaveUp)
	}
}

// Step does the next step.
func (c *Commits) Step() {
	switch c.stage {
	case StageIdle:
		c.seal()
	case StageAnswer:
		c.answer()
	case StageTidy:
		c.tidy()
	default:
		c.write()
	}
}

// write executes a step that makes jobs durable. If the disk is full, it frees space or waits.
func (c *Commits) write() {
	waited := c.full != nil
	var err error
	switch {
	case waited && c.ending:
		err = ErrClosed
	case waited:
		err = c.relieve()
	}
	if err == nil || spaceMissing(err) != nil {
		err = c.writeStage()
	}
	full := spaceMissing(err)
	switch {
	case full != nil && c.ending:
		c.failRest(ErrClosed)
	case full != nil:
		c.wait(full, waited)
	case err != nil:
		c.failRest(err)
	default:
		c.wait(nil, false)
		c.next()
	}
}

// wait records that a step found no space, or with nil that it found some. The first time there is no pause: the next
// Step frees what is not needed.
func (c *Commits) wait(full *FullError, again bool) {
	c.full, c.completed.Full = full, full
	if c.pause = 0; again {
		c.pause = spaceAfter
	}
	if full == nil {
		c.earlier = nil
	}
}

func (c *Commits) writeStage() error {
	switch c.stage {
	case StageBodies:
		return c.appendBodies()
	case StageBodySync:
		if err := c.bodies.Sync(); err != nil {
			return c.log.fail("sync of bodies", err)
		}
		return nil
	case StageRecords:
		return c.appendRecords()
	default:
		return c.sync()
	}
}

// next continues to the next stage.
func (c *Commits) next() {
	c.at, c.part = 0, 0
	switch c.stage {
	case StageBodies:
		c.stage = StageBodySync
		if c.bodies == nil || c.Mutant == MutantBodiesLate {
			c.stage = StageRecords
		}
	case StageBodySync:
		c.stage = StageRecords
	case StageRecords:
		c.stage = StageSync
		if c.Mutant == MutantAnswerEarly {
			c.callDone()
		}
	default:
		c.count(nil)
		c.stage = StageAnswer
	}
}

// failRest fails the rest of the batch and everything after it, because a log has no gaps.
func (c *Commits) failRest(err error) {
	if c.log.err == nil {
		c.log.unlend() // the log was closed while it waited for space
	}
	c.wait(nil, false)
	c.gaveUp, c.fit, c.stage = err, len(c.rest), StageAnswer
	c.count(err)
}

// appendBodies writes the bodies of the jobs. They are durable before the records that name them are written. If a
// write fails, the log is shut too, because it must not refer to missing bodies. If there is no space for a job, this
// round has only the jobs before it.
func (c *Commits) appendBodies() error {
	for ; c.at < c.fit; c.at, c.part = c.at+1, 0 {
		records := c.rest[c.at].records
		for ; c.part < len(records); c.part++ {
			body := records[c.part].Body
			if body == nil {
				continue
			}
			if c.bodies == nil {
				return c.log.fail("append of a body", &NotFoundError{Instance: body.Instance, Index: body.Index})
			}
			if err := c.bodies.Append(*body); spaceMissing(err) != nil && c.at > 0 {
				c.fit = c.at
				return nil
			} else if err != nil {
				return c.log.fail("append of a body", err)
			}
		}
	}
	return nil
}

// appendRecords writes the jobs to the log. If there is no space for a job, this round has only the jobs before it.
// Written records of that job stay, and the next round continues after them: if it started again, the first entry
// would cut off the entries after it, but the records that drop their cells would remain. A crash would lose both.
func (c *Commits) appendRecords() error {
	if c.at == 0 {
		c.part = max(c.part, c.begun)
	}
	if c.Mutant == MutantCutFirst {
		if err := c.cutFirst(); err != nil {
			return err
		}
	}
	for ; c.at < c.fit; c.at, c.part = c.at+1, 0 {
		if err := c.appendJob(&c.rest[c.at]); spaceMissing(err) != nil && c.at > 0 {
			c.fit, c.begun = c.at, c.part
			return nil
		} else if err != nil {
			return err
		}
	}
	c.begun = 0
	return nil
}

func (c *Commits) appendJob(j *job) error {
	switch {
	case j.compact:
		return c.log.Compact(j.instance, j.index)
	case j.rewrite:
		return c.log.Rewrite(j.instance)
	}
	n, err := c.log.gatherRecords(j.records[c.part:])
	c.part += n
	if err != nil {
		return err
	}
	return c.log.relieve()
}

// cutFirst is for a mutant. It truncates the log before earlier records are written.
func (c *Commits) cutFirst() error {
	for i := range c.rest[:c.fit] {
		if j := &c.rest[i]; j.compact {
			if err := c.log.Compact(j.instance, j.index); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Commits) sync() error {
	if err := c.log.Sync(); err != nil {
		return err
	}
	if c.bodies != nil {
		c.bodies.LogDurable()
	}
	return nil
}

// count counts the jobs of this round.
func (c *Commits) count(err error) {
	s := &c.completed
	s.Syncs++
	s.Failed = err
	s.PendingBytes = 0
	for i := range c.rest[c.fit:] {
		s.PendingBytes += int64(c.rest[c.fit+i].bytes)
	}
	for i := range c.rest[:c.fit] {
		if j := &c.rest[i]; !j.compact && !j.rewrite {
			s.Submits++
			s.Records += uint64(len(j.records))
			s.Bytes += uint64(j.bytes)
		}
	}
}

// answer calls done for completed jobs, and continues with the rest.
func (c *Commits) answer() {
	c.callDone()
	if c.rest = c.rest[c.fit:]; len(c.rest) > 0 {
		c.round()
		return
	}
	clear(c.batch)
	c.batch, c.rest, c.fit = nil, nil, 0
	c.stage, c.pause = StageIdle, sealAfter
	if c.log.err == nil {
		c.stage, c.pause = StageTidy, 0
	}
}

// callDone calls done for the jobs of this round for which it was not called yet.
func (c *Commits) callDone() {
	for i := range c.rest[:c.fit] {
		if done := c.rest[i].done; done != nil {
			c.rest[i].done = nil
			done(c.gaveUp)
		}
	}
}

// tidy does one piece of background work, after a batch.
func (c *Commits) tidy() {
	c.log.prepare(c.background)
	c.tidyBodies()
	c.stage, c.pause = StageIdle, sealAfter
}

// tidyBodies moves live bodies out of files most of which is not needed. It reports whether there is more to do. An
// error is returned to the next submission.
func (c *Commits) tidyBodies() (more bool) {
	if c.bodies == nil {
		return false
	}
	c.bodies.prepare(c.background)
	more, err := c.bodies.Compact()
	if err != nil {
		c.failed(err)
	}
	return more
}

// seal seals an idle log and its bodies, and continues to free space in files of bodies.
func (c *Commits) seal() {
	more, err := false, c.log.seal()
	if err == nil && c.bodies != nil {
		more = c.tidyBodies()
		if err = c.bodies.Sync(); err == nil {
			err = c.bodies.seal()
		}
	}
	switch {
	case spaceMissing(err) != nil:
		c.pause = spaceAfter
	case err != nil:
		c.failed(err)
		c.pause = forever
	case more:
		c.pause = tidyAfter
	default:
		c.pause = forever
	}
}

// failed shuts the log, so that the next submission fails, unless the error is only a full disk.
func (c *Commits) failed(err error) {
	if err = c.log.fail("tidy", err); spaceMissing(err) == nil {
		c.completed.Failed = err
	}
}
