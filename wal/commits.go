package wal

import "time"

const (
	// sealAfter is how long a log is idle before it is sealed.
	sealAfter = 100 * time.Millisecond
	// tidyAfter is the pause between parts of the work that is done when a log is idle.
	tidyAfter = 5 * time.Millisecond
	// roomAfter is the pause between two attempts to find room on a full disk.
	roomAfter = 50 * time.Millisecond
	// forever is a pause that only something submitted ends.
	forever time.Duration = -1
)

// Beside has a function run soon, perhaps beside everything else. What it returns returns when the
// function has run.
type Beside func(func()) (wait func())

// Commits is group commit on a Log and the Bodies beside it, as a sequence of steps: it takes
// whatever was submitted, by all instances, makes it durable with one sync of each, and tells
// those who submitted it. It has no goroutine, no lock and no clock: whoever executes it calls
// Gather, and then Step or, if Gather says false, waits for Pause or for the next submission.
// Writer does so in a goroutine.
//
// The Log's and Bodies' methods that are safe beside others stay so; the rest are for Step.
//
// Submit, Compact, Rewrite, Close, Queued and Gather look at what waits; Step, Busy, Syncs, Pause
// and Stats at what is under way, and Gather at both. An executor that lets several goroutines
// submit holds a lock around the former.
type Commits struct {
	log    *Log
	bodies *Bodies // nil: records have none
	beside Beside

	// What waits.
	queue  []job
	spare  []job // the other half of a pair of buffers
	queued int64 // bytes in queue
	closed bool

	// What is under way. rest is the tail of batch that was not told yet; of it the first fit
	// jobs are made durable in this round. In a stage that goes through them at is the job and
	// part the record of it that is next.
	//
	//	fit ≤ len(rest) ≤ len(batch); at ≤ fit
	stage     Stage
	batch     []job
	rest      []job
	fit       int
	at, part  int
	pause     time.Duration // before the next step
	ending    bool          // no room is waited for any more
	full      *FullError    // why the stage waits for room; nil: it does not
	seen      int           // how many jobs waited when it was last looked for room
	earlier   []job         // compactions that may be done at once, to make room
	gaveUp    error         // why nothing is written any more
	completed CommitStats

	// Mutant is for tests: bodies-after-log, answer-before-sync, cut-before-records.
	Mutant Mutant
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
	StageIdle     Stage = iota // nothing is under way: seal the files, tidy up
	StageBodies                // write the bodies of records
	StageBodySync              // make them durable
	StageRecords               // write the records
	StageSync                  // make them durable
	StageAnswer                // tell those who submitted them
	StageTidy                  // prepare and empty files
)

var stageNames = [...]string{"idle", "bodies", "sync of bodies", "records", "sync", "answer", "tidy"}

func (s Stage) String() string { return stageNames[s] }

// CommitStats are counts since the beginning.
type CommitStats struct {
	Submits uint64 // calls of Submit that are durable or failed
	Records uint64
	Bytes   uint64 // of records' parts and bodies, without headers
	Syncs   uint64
	// PendingBytes are under way.
	PendingBytes int64
	// Failed is why the log is shut, or nil.
	Failed error
	// Full is why the step under way waits for room on the disk; nil: it does not.
	Full *FullError
}

// NewCommits returns group commit on a log and the bodies beside it, which must not be used
// otherwise from then on. bodies may be nil if no record has a body. beside runs a function soon,
// perhaps beside what is called next.
func NewCommits(l *Log, bodies *Bodies, beside Beside) *Commits {
	return &Commits{log: l, bodies: bodies, beside: beside, pause: sealAfter}
}

// Submit hands over records and their bodies; see Writer.Submit. It reports false after Close:
// then done will not be called.
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

// Compact is Log.Compact, in the order of submission.
func (c *Commits) Compact(instance uint32, index uint64) bool {
	return c.add(job{compact: true, instance: instance, index: index})
}

// Rewrite is Log.Rewrite, in the order of submission.
func (c *Commits) Rewrite(instance uint32, done func(error)) bool {
	return c.add(job{rewrite: true, instance: instance, done: done})
}

func (c *Commits) add(j job) bool {
	if c.closed {
		return false
	}
	c.queue = append(c.queue, j)
	c.queued += int64(j.bytes)
	return true
}

// Queued is how many jobs wait, and how many bytes of records and bodies they have.
func (c *Commits) Queued() (jobs int, bytes int64) { return len(c.queue), c.queued }

// Close says that nothing more is submitted, and that room on a full disk is not waited for any
// more. What was submitted is still made durable, or fails.
func (c *Commits) Close() { c.closed = true }

// Closed reports whether everything is over.
func (c *Commits) Closed() bool { return c.closed && len(c.queue) == 0 && c.stage == StageIdle }

// Gather takes what waits if nothing is under way. It reports whether Step is to be called at
// once.
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
	}
	return c.stage != StageIdle && c.pause == 0
}

// Busy reports whether something is under way that need not wait for anything but Step.
func (c *Commits) Busy() bool { return c.stage != StageIdle && c.full == nil }

// More reports whether the batch has jobs behind those of this round.
func (c *Commits) More() bool { return len(c.rest) > c.fit }

// Stage is what Step does next.
func (c *Commits) Stage() Stage { return c.stage }

// Syncs reports whether the next Step is to make something durable, which takes a while.
func (c *Commits) Syncs() bool {
	switch c.stage {
	case StageBodySync:
		return c.bodies.dirty
	case StageSync:
		return c.log.dirty || len(c.log.pieces) > 0
	}
	return false
}

// Pause is how long the next Step should wait if Gather says false; negative: until something is
// submitted.
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

// round begins to make durable what is left of the batch.
func (c *Commits) round() {
	c.stage, c.fit, c.at, c.part = StageBodies, len(c.rest), 0, 0
	if c.gaveUp != nil {
		c.giveUp(c.gaveUp)
	}
}

// Step does what is next.
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

// write does a step that makes jobs durable. Where there is no room it makes some, or waits.
func (c *Commits) write() {
	waited := c.full != nil
	var err error
	switch {
	case waited && c.ending:
		err = ErrClosed
	case waited:
		err = c.relieve()
	}
	if err == nil || roomMissing(err) != nil {
		err = c.writeStage()
	}
	full := roomMissing(err)
	switch {
	case full != nil && c.ending:
		c.giveUp(ErrClosed)
	case full != nil:
		c.wait(full, waited)
	case err != nil:
		c.giveUp(err)
	default:
		c.wait(nil, false)
		c.next()
	}
}

// wait notes that a step found no room (nil: that it did). The first time what may go is given
// back at once.
func (c *Commits) wait(full *FullError, again bool) {
	c.full, c.completed.Full = full, full
	if c.pause = 0; again {
		c.pause = roomAfter
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

// next goes on to the next stage.
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
			c.tell()
		}
	default:
		c.count(nil)
		c.stage = StageAnswer
	}
}

// giveUp fails what is left of the batch, and everything after it: nothing may follow what is
// missing.
func (c *Commits) giveUp(err error) {
	if c.log.err == nil {
		c.log.unlend() // it was closed while it waited for room
	}
	c.wait(nil, false)
	c.gaveUp, c.fit, c.stage = err, len(c.rest), StageAnswer
	c.count(err)
}

// appendBodies writes the bodies of the jobs: they are durable before the records that name them
// are written. If that fails, the log is shut too: it must not name what is not there. Where
// there is no room, the jobs before come first.
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
			if err := c.bodies.Append(*body); roomMissing(err) != nil && c.at > 0 {
				c.fit = c.at
				return nil
			} else if err != nil {
				return c.log.fail("append of a body", err)
			}
		}
	}
	return nil
}

// appendRecords writes the jobs to the log. Where there is no room, the jobs before come first.
func (c *Commits) appendRecords() error {
	if c.Mutant == MutantCutFirst {
		if err := c.cutFirst(); err != nil {
			return err
		}
	}
	for ; c.at < c.fit; c.at, c.part = c.at+1, 0 {
		if err := c.appendJob(&c.rest[c.at]); roomMissing(err) != nil && c.at > 0 {
			c.fit = c.at
			return nil
		} else if err != nil {
			return err
		}
	}
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
	return err
}

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

// answer tells those whose jobs are done, and goes on with the rest.
func (c *Commits) answer() {
	c.tell()
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

// tell calls done of the jobs of this round that were not told yet.
func (c *Commits) tell() {
	for i := range c.rest[:c.fit] {
		if done := c.rest[i].done; done != nil {
			c.rest[i].done = nil
			done(c.gaveUp)
		}
	}
}

// tidy does a part of what is not urgent behind a batch.
func (c *Commits) tidy() {
	c.log.prepare(c.beside)
	c.tidyBodies()
	c.stage, c.pause = StageIdle, sealAfter
}

// tidyBodies empties files of which most is dead, and reports whether there is more of that to
// do. An error shows in what is submitted next.
func (c *Commits) tidyBodies() (more bool) {
	if c.bodies == nil {
		return false
	}
	c.bodies.prepare(c.beside)
	more, err := c.bodies.Compact()
	if err != nil {
		c.failed(err)
	}
	return more
}

// seal seals an idle log and its bodies, and goes on tidying up.
func (c *Commits) seal() {
	more, err := false, c.log.seal()
	if err == nil && c.bodies != nil {
		more = c.tidyBodies()
		if err = c.bodies.Sync(); err == nil {
			err = c.bodies.seal()
		}
	}
	switch {
	case roomMissing(err) != nil:
		c.pause = roomAfter
	case err != nil:
		c.failed(err)
		c.pause = forever
	case more:
		c.pause = tidyAfter
	default:
		c.pause = forever
	}
}

// failed shuts the log for what is submitted next, unless there was only no room.
func (c *Commits) failed(err error) {
	if err = c.log.fail("tidy", err); roomMissing(err) == nil {
		c.completed.Failed = err
	}
}
