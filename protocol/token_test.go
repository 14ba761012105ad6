package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTokensAsText(t *testing.T) {
	for _, token := range []Token{
		{Session: Session{Member: 1, Incarnation: 1}, Seq: 1},
		{Session: NewSession(^MemberID(0), LogID{0xff, 0xff, 0xff, 0xff}, 7, true), Seq: ^uint64(0)},
	} {
		got, err := ParseToken(FormatToken(token))
		require.NoError(t, err)
		require.Equal(t, token, got)
	}
	require.Equal(t, "8e9e-a0000000b-12",
		FormatToken(Token{Session: Session{Member: 0x8e9e, Incarnation: 0xa0000000b}, Seq: 12}))
	for _, text := range []string{"", "1-1", "1-1-1-1", "0-1-1", "1-0-1", "1-1-0", "1-1-x", "01-1-1", "A-1-1", "+1-1-1",
		"1-1-18446744073709551616", " 1-1-1"} {
		_, err := ParseToken(text)
		var bad *OptionsError
		require.ErrorAs(t, err, &bad, text)
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add("8e9e-a0000000b-12")
	f.Fuzz(func(t *testing.T, text string) {
		if token, err := ParseToken(text); err == nil {
			require.Equal(t, text, FormatToken(token))
		}
	})
}
