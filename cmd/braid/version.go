package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid"
)

func init() { commands = append(commands, newVersionCommand) }

func newVersionCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of braid and of its build",
		Example: "  braid version --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := buildVersion()
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(v)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "braid %s\netcd API %s\nrevision %s\n%s %s\n", v.Braid, v.EtcdAPI,
				v.Revision, v.Go, v.Platform)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

type versions struct {
	Braid    string `json:"braid"`
	EtcdAPI  string `json:"etcd_api"`
	Revision string `json:"revision"` // of the source; "unknown" if it was not built from a repository
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildVersion() versions {
	v := versions{Braid: braid.Version, Revision: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" +
		runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, m := range info.Deps {
		if m.Path == "go.etcd.io/etcd/api/v3" {
			v.EtcdAPI = m.Version
		}
	}
	dirty := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "-changed"
			}
		}
	}
	v.Revision += dirty
	return v
}
