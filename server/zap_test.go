package server

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func TestZapToSlog(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out,
		&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
	lg := ZapLogger(logger)
	lg.Info("nothing of interest")
	lg.Warn("simple token is not cryptographically signed")
	lg.With(zap.String("a", "x")).Warn("slow", zap.Int("b", 2))
	lg.Error("broken", zap.Error(nil), zap.Strings("c", []string{"y"}))
	require.Equal(t, "level=WARN msg=slow a=x b=2\nlevel=ERROR msg=broken c=[y]\n", out.String())
}
