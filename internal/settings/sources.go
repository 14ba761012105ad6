package settings

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Load completes parsed flags: values that are not on the command line come from the configuration file, then from
// variables ETCD_NAME, ETCD_DATA_DIR and so on. The result is validated. Errors name the source and the key.
func (s *Settings) Load(f *pflag.FlagSet, environ []string) error {
	given := map[string]bool{}
	f.Visit(func(flag *pflag.Flag) { given[flag.Name] = true })
	if !given["config-file"] {
		s.configFile = lookup(environ, "ETCD_CONFIG_FILE")
	}
	if s.configFile != "" {
		if err := s.readFile(f, given); err != nil {
			return err
		}
	}
	if err := readVariables(f, given, environ); err != nil {
		return err
	}
	s.protocolGiven = given["protocol"]
	s.noted = unknownVariables(f, environ)
	s.complete()
	return s.check()
}

func lookup(environ []string, name string) string {
	for _, pair := range environ {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// sections are the parts of etcd's file with flags under shorter names, by their paths, with what these names lack.
var sections = map[string]string{
	"client-transport-security": "", "peer-transport-security": "peer-", "socket-options": "socket-",
	"discovery-config": discovery, "discovery-config.client": discovery, "discovery-config.client.secure": discovery,
	"discovery-config.client.auth": discovery,
}

const discovery = "discovery-"

// renamed are the flags of keys in these sections whose names are not the section's prefix and the key.
var renamed = map[string]string{
	"client-transport-security.allowed-hostname":           "client-cert-allowed-hostname",
	"peer-transport-security.allowed-hostname":             "peer-cert-allowed-hostname",
	"peer-transport-security.allowed-cn":                   "peer-cert-allowed-cn",
	"peer-transport-security.skip-client-san-verification": "peer-skip-client-san-verification",
	"discovery-config.client.auth.username":                "discovery-user",
}

func (s *Settings) readFile(f *pflag.FlagSet, given map[string]bool) error {
	data, err := os.ReadFile(s.configFile)
	if err != nil {
		return err
	}
	var content map[string]any
	if err := yaml.UnmarshalStrict(data, &content); err != nil {
		return fmt.Errorf("%s: %w", s.configFile, err)
	}
	errs := s.readSection(f, given, "", content)
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return errors.Join(errs...)
}

// readSection sets the flags of one section, and of those in it; the path of the whole file is "".
func (s *Settings) readSection(f *pflag.FlagSet, given map[string]bool, path string, content map[string]any) []error {
	var errs []error
	for key, value := range content {
		name := sections[path] + key
		if path != "" {
			key = path + "." + key
		}
		inner, isMap := value.(map[string]any)
		if _, isSection := sections[key]; isSection && isMap {
			errs = append(errs, s.readSection(f, given, key, inner)...)
			continue
		}
		errs = append(errs, s.setFromFile(f, given, key, cmp.Or(renamed[key], name), value))
	}
	return errs
}

func (s *Settings) setFromFile(f *pflag.FlagSet, given map[string]bool, key, name string, value any) error {
	flag := f.Lookup(name)
	if flag == nil || name == "config-file" || name == "help" {
		return fmt.Errorf("%s: unknown key %q", s.configFile, key)
	}
	if given[name] || value == nil {
		return nil // the command line wins; a key without a value sets nothing
	}
	text, err := plain(value)
	if _, isNumber := value.(float64); isNumber && flag.Value.Type() == "duration" {
		text += "ns" // as etcd reads it
	}
	if err == nil {
		err = f.Set(name, text)
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", s.configFile, key, err)
	}
	given[name] = true
	return nil
}

// plain formats a value of the file as a flag takes it.
func plain(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return fmt.Sprint(v), nil
	case float64: // all numbers of YAML have this type
		if v == float64(int64(v)) {
			return fmt.Sprint(int64(v)), nil
		}
		return fmt.Sprint(v), nil
	case []any:
		var parts []string
		for _, element := range v {
			part, err := plain(element)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ","), nil
	}
	return "", fmt.Errorf("%v is no text, number, truth value or list of them", value)
}

func readVariables(f *pflag.FlagSet, given map[string]bool, environ []string) error {
	var errs []error
	f.VisitAll(func(flag *pflag.Flag) {
		value := cmp.Or(lookup(environ, variable(flag.Name)), lookup(environ, variable(experimental+flag.Name)))
		if value == "" || given[flag.Name] || flag.Name == "config-file" {
			return
		}
		if err := f.Set(flag.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("variable %s: %w", variable(flag.Name), err))
		}
	})
	return errors.Join(errs...)
}
