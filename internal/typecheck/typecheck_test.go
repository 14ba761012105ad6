package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
)

// checkFiles checks a module of these files for a platform, and returns what is printed.
func checkFiles(t *testing.T, platform string, files map[string]string) (string, error) {
	t.Helper()
	testsize.Long(t)
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\n\ngo 1.26.0\n"), 0o600))
	for name, text := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	var out bytes.Buffer
	err := run(&out, platform, nil)
	return out.String(), err
}

// module has a file for Linux alone and a file for others, and tests inside and outside of a package.
func module() map[string]string {
	return map[string]string{
		"a_linux.go":        "package m\n\nconst Name = \"linux\"\n",
		"a_other.go":        "//go:build !linux\n\npackage m\n\nconst Name = \"other\"\n",
		"m.go":              "package m\n\nimport \"m/under\"\n\nfunc Both() string { return Name + under.Name }\n",
		"inside_test.go":    "package m\n\nfunc ForTests() int { return len(Both()) }\n",
		"outside_test.go":   "package m_test\n\nimport \"m\"\n\nvar _ = m.ForTests()\n",
		"under/under.go":    "package under\n\nimport \"os\"\n\nvar Name = os.Args[0]\n",
		"under/own_test.go": "package under\n\nvar length int = len(Name)\n",
	}
}

func TestAModuleWithoutErrors(t *testing.T) {
	text, err := checkFiles(t, "darwin/arm64", module())
	require.NoError(t, err, text)
	require.Regexp(t, `^5 packages for darwin/arm64, and \d+ that they need\n$`, text)
}

// TestErrorsAreFound: each package has an error of its own, and all are found.
func TestErrorsAreFound(t *testing.T) {
	files := module()
	files["mixed/a_linux.go"] = "package mixed\n\nconst Name = \"linux\"\n"
	files["mixed/a_darwin.go"] = "package mixed\n\nconst Name = 1\n"
	files["mixed/m.go"] = "package mixed\n\nvar Both string = Name\n"
	files["body/f_darwin.go"] = "package body\n\nfunc f() int { return \"\" }\n"
	files["missing/a_linux.go"] = "package missing\n\nconst Name = \"linux\"\n"
	files["missing/m.go"] = "package missing\n\nvar Both = Name\n"
	files["inside/m.go"] = "package inside\n"
	files["inside/m_test.go"] = "package inside\n\nvar _ int = \"inside\"\n"
	files["outside/m_test.go"] = "package outside_test\n\nimport \"m\"\n\nvar _ = m.ForOthers()\n"
	files["unused/m.go"] = "package unused\n\nimport \"os\"\n"
	text, err := checkFiles(t, "darwin/arm64", files)
	require.ErrorContains(t, err, "6 errors for darwin/arm64")
	for _, want := range []string{
		"mixed/m.go:3:19: cannot use Name", "body/f_darwin.go:3:23: cannot use \"\"", "missing/m.go:3:12: undefined: Name",
		"inside/m_test.go:3:13: cannot use \"inside\"", "outside/m_test.go:5:11: undefined: m.ForOthers",
		"unused/m.go:3:8: \"os\" imported and not used",
	} {
		require.Contains(t, text, want)
	}
}

func TestWhatIsNotGo(t *testing.T) {
	files := module()
	files["f_darwin.go"] = "package m\n\nfunc {\n"
	_, err := checkFiles(t, "darwin/arm64", files)
	require.Error(t, err)
}

func TestErrorsOfOtherPlatformsAreLeft(t *testing.T) {
	files := module()
	files["f_darwin.go"] = "package m\n\nfunc f() int { return Name }\n"
	text, err := checkFiles(t, "linux/amd64", files)
	require.NoError(t, err, text)
}

func TestAPlatformHasTwoParts(t *testing.T) {
	require.ErrorContains(t, run(new(bytes.Buffer), "darwin", nil), "not GOOS/GOARCH")
}
