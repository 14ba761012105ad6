package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/braidlog/braid/internal/registry"
)

// foreign is a flag of etcd without a meaning here. A member that gets it, on the command line, in the file or as a
// variable, warns or refuses it.
type foreign struct {
	name   string
	isBool bool
	// harmless is the value of braid's own behaviour; "" always is.
	harmless string
	// refuse: the member does not start, because the flag's purpose would not be met: security, or the intended
	// cluster. Otherwise it is a warning.
	refuse bool
	why    string

	value string
	flag  *pflag.Flag
}

// String implements pflag.Value.
func (v *foreign) String() string { return v.value }

// Set implements pflag.Value.
func (v *foreign) Set(text string) error {
	v.value = text
	if b, err := strconv.ParseBool(text); err == nil && v.isBool {
		v.value = strconv.FormatBool(b) // etcd takes 0 and False, too
	}
	return nil
}

// Type implements pflag.Value.
func (v *foreign) Type() string {
	if v.isBool {
		return "bool"
	}
	return "string"
}

// given reports whether the flag requests something that braid does not have.
func (v *foreign) given() bool { return v.flag.Changed && v.value != "" && v.value != v.harmless }

const noV2 = "there is no v2"

// foreignFlags are those of etcd 3.7, and some earlier ones that manifests still have.
func foreignFlags() []*foreign {
	refused := []*foreign{
		{name: "proxy", harmless: "off", why: noV2},
		{name: "discovery", why: noV2 + ": give --discovery-endpoints with --discovery-token"},
	}
	for _, f := range refused {
		f.refuse = true
	}
	return slices.Concat(refused, ignoredFlags(), foreignGates())
}

func ignoredFlags() []*foreign {
	return []*foreign{
		{name: "snapshot-count", why: "snapshots are taken by bytes of log, see --snapshot-bytes"},
		{name: "snapshot-catchup-entries", why: "log is kept by bytes, see --keep-log-bytes"},
		{name: "max-snapshots", why: "old snapshots are removed as soon as they are not needed"},
		{name: "max-wals", why: "the log is kept by bytes, see --keep-log-bytes"},
		{name: "pre-vote", isBool: true, harmless: "true", why: "a candidate always asks before it disturbs a leader"},
		{name: "initial-election-tick-advance", isBool: true, harmless: "true", why: "elections begin by --election-timeout"},
		{name: "enable-v2", isBool: true, harmless: "false", why: noV2},
		{name: "proxy-failure-wait", harmless: "5000", why: noV2},
		{name: "proxy-refresh-interval", harmless: "30000", why: noV2},
		{name: "proxy-dial-timeout", harmless: "1000", why: noV2},
		{name: "proxy-write-timeout", harmless: "5000", why: noV2},
		{name: "proxy-read-timeout", harmless: "0", why: noV2},
		{name: "v2-deprecation", why: noV2},
		{name: "discovery-fallback", harmless: "exit", why: noV2 + ", to which a member could be a proxy"},
		{name: "discovery-proxy", why: noV2 + ", which was asked through it"},
		{name: "downgrade-check-time", why: "there are no downgrades"},

		{name: "logger", harmless: "zap", why: "there is one logger, see --log-format"},

		{name: "client-cert-file", why: "calls of /v3/ stay in the process and need no certificate"},
		{name: "client-key-file", why: "calls of /v3/ stay in the process and need no certificate"},
		{name: "peer-skip-client-san-verification", isBool: true, harmless: "true",
			why: "where a member connects from is not compared with its certificate; its peer URLs are with " +
				"--peer-cert-names-host"},
		{name: "socket-reuse-address", isBool: true, harmless: "true", why: "addresses of ended processes are always reused"},
		{name: "raft-read-timeout", why: "links between members have timeouts of their own"},
		{name: "raft-write-timeout", why: "links between members have timeouts of their own"},
	}
}

// experimental begins the names of many flags of etcd 3.5 and 3.6, which 3.7 has without it.
const experimental = "experimental-"

// takeExperimental makes flags of etcd 3.7 known by their earlier names, too.
func takeExperimental(f *pflag.FlagSet) {
	known := map[string]bool{}
	f.VisitAll(func(flag *pflag.Flag) { known[flag.Name] = true })
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if rest := strings.TrimPrefix(name, experimental); !known[name] && known[rest] {
			name = rest
		}
		return pflag.NormalizedName(name)
	})
}

// foreignFlags registers the flags that have no meaning here.
func (s *Settings) foreignFlags(f *pflag.FlagSet) {
	s.foreign = foreignFlags()
	for _, v := range s.foreign {
		f.Var(v, v.name, v.why)
		v.flag = f.Lookup(v.name)
		v.flag.Hidden = true
		if v.isBool {
			v.flag.NoOptDefVal = "true"
		}
	}
}

// checkForeign refuses flags that must not be ignored.
func (s *Settings) checkForeign() error {
	var wrong []string
	for _, v := range s.foreign {
		if v.refuse && v.given() {
			wrong = append(wrong, fmt.Sprintf("--%s (variable %s): %s", v.name, variable(v.name), v.why))
		}
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(wrong, "\n"))
}

// Ignored returns a line for every given setting that has no effect, sorted.
func (s *Settings) Ignored() []string {
	out := slices.Concat(s.noted, s.ignoredGates(), s.plainListeners())
	for _, v := range s.foreign {
		if v.given() && !v.refuse {
			out = append(out, "--"+v.name+" does nothing: "+v.why)
		}
	}
	if s.InitialState == StateNew && len(s.Join) > 0 {
		out = append(out, "--join does nothing with --initial-cluster-state new")
	}
	if s.SRVName != "" && s.SRVDomain == "" {
		out = append(out, "--discovery-srv-name does nothing without --discovery-srv")
	}
	if p := s.protocol(); len(s.LanePrefixes) > 0 && p != nil && !s.early(p) {
		why := ": it has no lanes"
		if slices.Contains(registry.Having("lanes"), p.Name) {
			why = " until lanes are turned on (lanes=true)"
		}
		out = append(out, "--lane-prefix does nothing with --protocol "+s.Protocol+why)
	}
	if s.AuthTokenTTL != defaultTokenTTL && strings.HasPrefix(s.AuthToken, "jwt,") {
		out = append(out, "--auth-token-ttl does nothing with jwt: its ttl= is in --auth-token")
	}
	slices.Sort(out)
	return out
}

// variable is the name of a flag's environment variable.
func variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

const variablePrefix = "ETCD_"

// unknownVariables returns a line for every variable that looks like a flag and is not one.
func unknownVariables(f *pflag.FlagSet, environ []string) (out []string) {
	known := map[string]bool{}
	f.VisitAll(func(flag *pflag.Flag) {
		known[variable(flag.Name)], known[variable(experimental+flag.Name)] = true, true
	})
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, variablePrefix) && value != "" && !known[name] {
			out = append(out, "variable "+name+" does nothing: there is no such flag")
		}
	}
	return out
}
