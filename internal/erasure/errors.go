package erasure

import "fmt"

// PiecesError indicates that a body cannot be cut into the requested number of pieces.
type PiecesError struct {
	K uint8
}

func (e *PiecesError) Error() string { return fmt.Sprintf("erasure: a body of %d pieces", e.K) }

// RowsError indicates that there are too few distinct rows.
type RowsError struct {
	Have, Need int
}

func (e *RowsError) Error() string {
	return fmt.Sprintf("erasure: %d distinct rows, need %d", e.Have, e.Need)
}

// LengthError indicates that a row is not as long as the body's rows are.
type LengthError struct {
	R          uint8
	Have, Want int // bytes
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("erasure: row %d has %d bytes, want %d", e.R, e.Have, e.Want)
}
