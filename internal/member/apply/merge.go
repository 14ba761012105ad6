package apply

import "github.com/braidlog/braid/internal/member"

// In a keyed order a snapshot of another member may be ahead of this member in some groups and behind in
// others. So it cannot take the place of the state, and a start could not continue from it: this member's log
// of another group may begin later. Therefore it waits apart ("staged") until it is merged into the state,
// group by group. This member then writes a snapshot of its own. Only when that is durable, the cores are
// offered it. Thus the snapshots on a member's disk follow each other as if it had applied all itself.

// mergeStage says how far a merge is.
type mergeStage uint8

const (
	mergeNone   mergeStage = iota
	mergeDone              // in memory; the next snapshot will have it
	mergeSaving            // the snapshot that has it is being written
)

// merge merges the snapshot that is staged into the state.
func (p *Apply) merge() error {
	if p.Stuck() {
		p.world.Merged(nil, &member.NoStateError{Detail: "what is applied is not what the log says"})
		return nil
	}
	f, err := p.world.Staged()
	if err != nil {
		p.world.Merged(nil, err)
		return nil
	}
	defer f.Close()
	meta, resident := f.Meta(), p.Resident()
	if err := p.Merge(&meta, f); err != nil {
		return err
	}
	if err := f.Verify(); err != nil {
		return err
	}
	p.world.Left(resident-p.Resident(), 0)
	p.merging, p.due = mergeDone, true
	p.world.PublishConfigs(p.Applier)
	p.world.Tell(ApplyNews{What: SnapshotInstalled, Position: meta.Cursor.Position})
	return nil
}

// mergeAgain notes that the snapshot that is to have what was merged could not be written. It is tried again
// soon: see StateExchange.Tend.
func (p *Apply) mergeAgain() {
	if p.merging == mergeSaving {
		p.merging = mergeDone
	}
}

// forgetOlder removes the snapshots from before the newest one, because a core has given up its log for
// that.
func (p *Apply) forgetOlder() error {
	newest := p.saved.Newest
	if err := p.world.Prune(newest.Position); err != nil {
		return err
	}
	p.save(member.Saved{Newest: newest, Oldest: newest})
	return nil
}
