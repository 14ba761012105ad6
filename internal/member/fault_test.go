package member

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

func TestFaults(t *testing.T) {
	for want, errs := range map[Fault][]error{
		FaultNone:       {nil},
		FaultCompacted:  {&wal.CompactedError{Index: 3}},
		FaultReplaced:   {&wal.NotFoundError{Index: 3}, &ReplacedError{Index: 3}},
		FaultStopped:    {wal.ErrClosed},
		FaultDamaged:    {&wal.CorruptError{File: "f"}, &protocol.CorruptError{What: "log"}},
		FaultUnreadable: {errors.New("input/output error")},
	} {
		for _, err := range errs {
			if err != nil {
				err = fmt.Errorf("read: %w", err)
			}
			require.Equal(t, want, FaultOf(err), "%v", err)
			require.Equal(t, want >= FaultDamaged, want.Sick())
		}
	}
	err := &LoadError{Instance: 2, Index: 7, Err: &wal.CorruptError{File: "f", Offset: 9, Detail: "x"}}
	require.EqualError(t, err, "entry 7 of instance 2 cannot be read (damaged): wal: f is damaged at offset 9: x")
	var lost *LostError
	require.ErrorAs(t, LostIfUnreadable(err), &lost)
	require.NotErrorAs(t, LostIfUnreadable(&LoadError{Err: &wal.CompactedError{}}), &lost)
}
