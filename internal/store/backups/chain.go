package backups

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Chain is a whole backup and the increments that lead from it to a state.
type Chain []Info

// Last is the backup whose state is restored.
func (c Chain) Last() *Info { return &c[len(c)-1] }

// Files returns the file of the whole backup, and those of the increments in their order.
func (c Chain) Files(dir string) (full string, increments []string) {
	for n := range c {
		increments = append(increments, c[n].Path(dir))
	}
	return increments[0], increments[1:]
}

// Find returns what is needed for the newest backup of a revision that has no problem, because several may be of one
// revision; 0: for the newest backup. A backup with a problem is refused: then name the revision of an earlier one.
func Find(dir string, revision int64) (Chain, error) {
	all, err := List(dir)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no backups", dir)
	}
	var revisions []string
	problem := ""
	for n, i := range slices.Backward(all) {
		if i.Problem == "" && !slices.Contains(revisions, strconv.FormatInt(i.Now.Revision, 10)) {
			revisions = append(revisions, strconv.FormatInt(i.Now.Revision, 10))
		}
		if revision != 0 && i.Now.Revision != revision {
			continue
		}
		if i.Problem != "" {
			if problem = cmp.Or(problem, i.Problem); revision == 0 {
				break
			}
			continue
		}
		first := n
		for all[first].Kind != Full {
			first--
		}
		return all[first : n+1], nil
	}
	if problem != "" {
		return nil, fmt.Errorf("%s; the backups before it can be restored by their revisions", problem)
	}
	return nil, fmt.Errorf("%s has no backup of revision %d, but those of %s", dir, revision,
		strings.Join(revisions, ", "))
}
