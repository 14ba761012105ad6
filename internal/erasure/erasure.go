package erasure

// Row is one row of a body.
type Row struct {
	R     uint8
	Bytes []byte
}

// Len is the length of each row of a body of size bytes cut into k pieces: ⌈size/k⌉.
func Len(size int, k uint8) int { return (size + int(k) - 1) / max(int(k), 1) }

// Cut returns row r of a body that is cut into k pieces. A row below k is a part of body
// itself unless it needs padding; the others are computed, each in one pass over the body.
func Cut(body []byte, k, r uint8) ([]byte, error) {
	switch {
	case k == 0:
		return nil, &PiecesError{K: k}
	case k == 1 || len(body) == 0:
		return body, nil // with one piece every row is the piece
	case r < k:
		return piece(body, k, r), nil
	}
	encoder, rows, err := codec(k, r)
	if err != nil {
		return nil, err
	}
	shards := make([][]byte, rows)
	for i := range k {
		shards[i] = piece(body, k, i)
	}
	return only(encoder, shards, r)
}

// piece is row r < k.
func piece(body []byte, k, r uint8) []byte {
	n := Len(len(body), k)
	from, to := min(int(r)*n, len(body)), min((int(r)+1)*n, len(body))
	if to-from == n {
		return body[from:to:to]
	}
	padded := make([]byte, n)
	copy(padded, body[from:to])
	return padded
}

// only computes row r alone from the rows that are in shards.
func only(encoder reconstructor, shards [][]byte, r uint8) ([]byte, error) {
	required := make([]bool, len(shards))
	required[r] = true
	if err := encoder.ReconstructSome(shards, required); err != nil {
		return nil, err
	}
	return shards[r], nil
}

// reconstructor is the part of the library that is used.
type reconstructor interface {
	ReconstructSome(shards [][]byte, required []bool) error
}

// Join returns a body of size bytes from k distinct rows or more; *RowsError if there are fewer. It cannot detect
// wrong rows.
func Join(size int, k uint8, rows []Row) ([]byte, error) {
	last, err := check(size, k, rows)
	if err != nil {
		return nil, err
	}
	n := Len(size, k)
	body := make([]byte, n*int(k))
	if k == 1 || size == 0 {
		copy(body, rows[0].Bytes)
		return body, nil
	}
	encoder, all, err := codec(k, last)
	if err != nil {
		return nil, err
	}
	shards, required := make([][]byte, all), make([]bool, all)
	for i := range int(k) {
		// Of no length, so that the library computes it in its place.
		shards[i], required[i] = body[i*n:i*n:(i+1)*n], true
	}
	for _, row := range rows {
		switch s := shards[row.R]; {
		case len(s) > 0:
		case row.R < k:
			shards[row.R] = s[:copy(s[:n], row.Bytes)]
		default:
			shards[row.R] = row.Bytes
		}
	}
	if err := encoder.ReconstructSome(shards, required); err != nil {
		return nil, err
	}
	return body[:size:size], nil
}

// Derive computes row r of a body of size bytes from k distinct rows or more. If r is among
// them, it is that row itself.
func Derive(size int, k, r uint8, rows []Row) ([]byte, error) {
	last, err := check(size, k, rows)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.R == r || k == 1 || size == 0 {
			return row.Bytes, nil
		}
	}
	encoder, all, err := codec(k, max(last, r))
	if err != nil {
		return nil, err
	}
	shards := make([][]byte, all)
	for _, row := range rows {
		if shards[row.R] == nil {
			shards[row.R] = row.Bytes
		}
	}
	return only(encoder, shards, r)
}

// check reports what is wrong with rows, and which is the last one.
func check(size int, k uint8, rows []Row) (last uint8, err error) {
	if k == 0 {
		return 0, &PiecesError{K: k}
	}
	var seen [allRows]bool
	distinct := 0
	for _, row := range rows {
		if want := Len(size, k); len(row.Bytes) != want {
			return 0, &LengthError{R: row.R, Have: len(row.Bytes), Want: want}
		}
		if !seen[row.R] {
			seen[row.R] = true
			distinct++
		}
		last = max(last, row.R)
	}
	if distinct < int(k) {
		return 0, &RowsError{Have: distinct, Need: int(k)}
	}
	return last, nil
}
