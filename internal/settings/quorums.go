package settings

import (
	"fmt"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// QuorumsName is the setting of quorums that need not be majorities.
var QuorumsName = quorum.Setting.Name

// Quorums are the settings with quorums that a manifest names; "": majorities. Other texts are refused later.
func Quorums(text string) setting.Values {
	if text == "" {
		return setting.Values{}
	}
	if y, err := quorum.Parse(text); err == nil {
		return quorum.Setting.Set(setting.Values{}, y) // a protocol without the setting has majorities, too
	}
	v, err := setting.Parse(QuorumsName + "=" + text)
	if err != nil {
		return setting.Values{}
	}
	return v
}

// Tolerance describes in a line the failures that a cluster of this number of voters tolerates; "" if all quorums are
// majorities. zones has the zone of each, in any order; nil: none has one. The error indicates settings of another
// protocol, or for another number of voters, or of zones.
func Tolerance(protocol string, v setting.Values, voters int, zones []string) (string, error) {
	p := registry.Find(protocol)
	if p == nil {
		return "", nil
	}
	c, err := p.Choose(v, voters)
	if err != nil {
		return "", FlagError(err)
	}
	y, err := registry.QuorumsOf(c.Values, voters, zones)
	switch {
	case y.Majority():
		return "", nil
	case err != nil:
		return "", fmt.Errorf("--%s: %w", QuorumsName, err)
	}
	return y.Tolerates(voters, zones).String(), nil
}
