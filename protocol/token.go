package protocol

import (
	"fmt"
	"strconv"
	"strings"
)

// Token names a command, which may be accepted and not applied yet. If its session's numbers are separate for each
// instance, it belongs to the first one.
type Token = ProposalID

// CheckTokens reports tokens that no member ever issued.
func CheckTokens(tokens []Token) error {
	for _, t := range tokens {
		if t.Session.Member == 0 || t.Session.Incarnation == 0 || t.Seq == 0 {
			return &OptionsError{fmt.Sprintf("no command has the token %s", FormatToken(t))}
		}
	}
	return nil
}

// FormatToken writes a token as text: member and incarnation in hexadecimal, and the number of the
// command.
func FormatToken(t Token) string {
	return fmt.Sprintf("%x-%x-%d", uint64(t.Session.Member), t.Session.Incarnation, t.Seq)
}

// ParseToken reads what FormatToken wrote. The error is an [OptionsError].
func ParseToken(text string) (t Token, err error) {
	parts := strings.Split(text, "-")
	bad := &OptionsError{fmt.Sprintf("%.80q is no token", text)}
	if len(parts) != 3 {
		return t, bad
	}
	var numbers [3]uint64
	for i, base := range [...]int{16, 16, 10} {
		if numbers[i], err = strconv.ParseUint(parts[i], base, 64); err != nil {
			return Token{}, bad
		}
	}
	t = Token{Session: Session{Member: MemberID(numbers[0]), Incarnation: numbers[1]}, Seq: numbers[2]}
	if FormatToken(t) != text {
		return Token{}, bad
	}
	return t, CheckTokens([]Token{t})
}
