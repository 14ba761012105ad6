package main

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
)

func TestTestsAreFoundByTheirCampaigns(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		found map[testsize.Campaign][]string
		wrong string
	}{
		"two": {
			text: `func TestA(t *testing.T) { testsize.Only(t, testsize.Seeds) }
func TestB(t *testing.T) { for range testsize.Pick(testsize.Mutants, 1, 2, 3) { f(testsize.Seeds) } }
func TestC(t *testing.T) { testsize.Long(t) }`,
			found: map[testsize.Campaign][]string{"seeds": {"TestA", "TestB"}, "mutants": {"TestB"}},
		},
		"main": {text: `func TestMain(m *testing.M) { testsize.Runs(testsize.Deep) }`,
			found: map[testsize.Campaign][]string{}},
		"helper": {text: `func start(t *testing.T) { testsize.Only(t, testsize.Processes) }`,
			wrong: `"processes" is named outside a test`},
		"table": {text: `var most = testsize.Pick(testsize.Models, 1, 2, 3)`, wrong: `"models" is named outside a test`},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "a_test.go", "package a\n"+c.text, 0)
			require.NoError(t, err)
			found, err := inFile(file)
			if c.wrong != "" {
				require.ErrorContains(t, err, c.wrong)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.found, found)
		})
	}
}

// TestEveryCampaignHasTests also finds a campaign that is named outside a test.
func TestEveryCampaignHasTests(t *testing.T) {
	all, err := find("../..")
	require.NoError(t, err)
	for _, c := range testsize.Campaigns {
		require.NotEmpty(t, all[c], c)
	}
}
