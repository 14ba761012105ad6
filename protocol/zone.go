package protocol

import "errors"

// MaxZoneBytes bounds the name of a zone.
const MaxZoneBytes = 64

const zoneText = "the zone is not a name of at most 64 letters, digits, '.', '_' and '-'"

// CheckZone returns an error unless a text is the name of a zone, or empty: at most [MaxZoneBytes] letters, digits,
// dots, underscores and hyphens, as in eu-west-1a. Names are compared byte by byte.
func CheckZone(name string) error {
	if len(name) > MaxZoneBytes {
		return errors.New(zoneText)
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return errors.New(zoneText)
		}
	}
	return nil
}

// Near reports whether two members are in the same zone. Members without a zone are near no other.
func (c *Config) Near(a, b MemberID) bool {
	m, o := c.Find(a), c.Find(b)
	return m != nil && o != nil && m.Zone != "" && m.Zone == o.Zone
}
