package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
)

func TestParse(t *testing.T) {
	name, f := parse("BenchmarkFrames/size=200/tls=false-2  \t 9 \t 1200 ns/op\t 160.50 MB/s\t 900.5 cpu-ns/op\t" +
		" 240 B/op\t 1 allocs/op\n")
	require.Equal(t, "Frames/size=200/tls=false", name)
	require.Equal(t, map[string]float64{"ns/op": 1200, "cpu-ns/op": 900.5, "B/op": 240, "allocs/op": 1}, f)
	name, _ = parse("BenchmarkNiagaraNext/R=12 100 7 ns/op")
	require.Equal(t, "NiagaraNext/R=12", name)
	for _, other := range []string{"PASS", "goos: linux", "BenchmarkX", "BenchmarkX failed after 3", ""} {
		name, _ = parse(other)
		require.Empty(t, name, other)
	}
}

func TestTable(t *testing.T) {
	var all []*result
	for _, ns := range []float64{100, 130, 110} {
		all = add(all, "a", "One", sideBefore, map[string]float64{"ns/op": ns, "allocs/op": 3})
		all = add(all, "a", "One", sideAfter, map[string]float64{"ns/op": ns / 2, "allocs/op": 3})
	}
	all = add(all, "a", "Two", sideAfter, map[string]float64{"ns/op": 1234.5})
	all = add(all, "b", "Two", sideBefore, map[string]float64{"B/op": 0})
	all = add(all, "b", "Two", sideAfter, map[string]float64{"B/op": 16})
	var out bytes.Buffer
	require.NoError(t, write(&out, all))
	require.Equal(t, strings.Join([]string{
		"package  benchmark  unit       before  after  change",
		"a        One        ns/op      110     55     -50 %",
		"a        One        allocs/op  3       3      =",
		"a        Two        ns/op      -       1234   new",
		"b        Two        B/op       0       16     was 0", "",
	}, "\n"), out.String())
}

// repository is a git repository with a module of one package, which has one benchmark, and some commits.
func repository(t *testing.T, commits ...string) string {
	dir := t.TempDir()
	git := func(args ...string) {
		author := []string{"-c", "user.name=n", "-c", "user.email=e"}
		_, err := output(t.Context(), dir, "git", append(author, args...)...)
		require.NoError(t, err)
	}
	git("init", "--quiet")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\n\ngo 1.24\n"), 0o600))
	for _, text := range commits {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "m_test.go"), []byte(text), 0o600))
		git("add", ".")
		git("commit", "--quiet", "-m", "x")
	}
	return dir
}

const (
	benchmark = "package m\n\nimport \"testing\"\n\nvar sink []byte\n\n" +
		"func BenchmarkOne(b *testing.B) {\n\tfor b.Loop() {\n\t\tsink = make([]byte, SIZE)\n\t}\n}\n"
	broken = "package m\n\nfunc\n"
)

func sized(bytes string) string { return strings.ReplaceAll(benchmark, "SIZE", bytes) }

func compare(t *testing.T, dir string) (string, error) {
	testsize.Long(t)
	t.Chdir(dir)
	whole, flags := suites, withoutPaths
	// With paths Go's library need not be compiled again.
	suites, withoutPaths = []suite{{".", []string{"One"}}}, nil
	t.Cleanup(func() { suites, withoutPaths = whole, flags })
	var out bytes.Buffer
	err := run(t.Context(), &out, "", 1, time.Second)
	text, tree := output(t.Context(), dir, "git", "worktree", "list")
	require.NoError(t, tree)
	require.Equal(t, 1, len(strings.Split(text, "\n")), "the other tree is gone")
	return out.String(), err
}

func TestAgainstTheCommitBefore(t *testing.T) {
	text, err := compare(t, repository(t, sized("16"), sized("32")))
	require.NoError(t, err)
	require.Regexp(t, `\.\s+One\s+B/op\s+16\s+32\s+\+100 %`, text)
	require.Regexp(t, `\.\s+One\s+allocs/op\s+1\s+1\s+=`, text)
}

func TestThereIsNoCommitBefore(t *testing.T) {
	text, err := compare(t, repository(t, sized("16")))
	require.NoError(t, err)
	require.Contains(t, text, "nothing to compare with")
}

func TestACommitBeforeThatDoesNotBuild(t *testing.T) {
	text, err := compare(t, repository(t, broken, sized("16")))
	require.NoError(t, err)
	require.Regexp(t, `One\s+B/op\s+-\s+16\s+new`, text)
}

func TestWhatIsCheckedOutMustBuild(t *testing.T) {
	_, err := compare(t, repository(t, sized("16"), broken))
	require.Error(t, err)
}
