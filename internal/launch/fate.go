package launch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/vfs"
)

// Fate is why a member ended permanently, according to its cluster.
type Fate struct {
	// Joins: another member was added in its place, and has not been started yet. It begins empty.
	Joins bool
	// Left explains why the cluster continues without the member here; "": the cluster expects it as it was.
	Left string
}

// resolve determines the fate of a member that ended permanently when the cluster was resumed. It reports whether the
// member is to be restarted as a new one.
func (m *member) resolve(ctx context.Context) (again bool) {
	c := m.c
	if !c.resumed || c.opt.Fate == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, c.opt.ReadyTimeout)
	defer cancel()
	dir := filepath.Join(c.opt.Dir, m.Name)
	manifest := c.now()
	fate, err := c.opt.Fate(ctx, &manifest, m.Member, dir)
	switch {
	case err != nil:
		m.how += fmt.Sprintf(" (what the others say of it is not known: %v)", err)
	case fate.Left != "":
		c.mu.Lock()
		m.left = true
		c.mu.Unlock()
		c.report(Event{Kind: Left, Member: m.Member, How: fate.Left})
	case fate.Joins:
		aside, err := c.replace(m.Name, dir)
		if err != nil {
			m.how += fmt.Sprintf(" (another member was added in its place, and cannot be started: %v)", err)
			return false
		}
		c.report(Event{Kind: Replaced, Member: m.Member, Aside: aside})
		return true
	}
	return false
}

// now is the manifest as it is now.
func (c *Cluster) now() Manifest {
	c.writing.Lock()
	defer c.writing.Unlock()
	m := *c.manifest
	m.Members = slices.Clone(m.Members)
	return m
}

// command is the command line of a member's process, with the emulation of links that is in it.
func (c *Cluster) command(name, dir string) (argv []string, net string) {
	manifest := c.now()
	c.mu.Lock()
	manifest.Net = c.net
	c.mu.Unlock()
	at := slices.IndexFunc(manifest.Members, func(m Member) bool { return m.Name == name })
	return c.opt.Command(&manifest, manifest.Members[at], dir), manifest.Net
}

// replace records that a member was added in place of another one, whose directory it sets aside.
func (c *Cluster) replace(name, dir string) (aside string, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := os.Stat(dir); err == nil {
		for n := 1; ; n++ {
			aside = fmt.Sprintf("%s.old%d", dir, n)
			if _, err := os.Stat(aside); os.IsNotExist(err) {
				break
			}
		}
		if err := os.Rename(dir, aside); err != nil {
			return "", err
		}
		if err := durable.SyncDir(vfs.OS, filepath.Dir(dir)); err != nil {
			return "", err
		}
	}
	for i := range c.manifest.Members {
		if c.manifest.Members[i].Name == name {
			c.manifest.Members[i].Joined = true
		}
	}
	return aside, c.manifest.write(c.opt.Dir)
}
