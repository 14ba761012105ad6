package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/braidlog/braid/internal/transport/netspec"
)

// readNet reads a specification of links from its file, if it names one, and validates it.
func readNet(spec *string) error {
	file, isFile := strings.CutPrefix(strings.TrimSpace(*spec), "@")
	text := *spec
	if isFile {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("--net: %w", err)
		}
		text = string(content)
	}
	s, err := netspec.Parse(text)
	if err != nil {
		return fmt.Errorf("--net: %w", err)
	}
	if isFile { // members and reports get the contents, not the path
		*spec = s.String()
	}
	return nil
}

// whereIn returns an error if a member needs a region. readNet reports an invalid specification.
func whereIn(spec, member string) error {
	s, err := netspec.Parse(spec)
	if err != nil {
		return nil
	}
	if err := s.CheckMember(member); err != nil {
		return fmt.Errorf("--net: %w", err)
	}
	return nil
}
