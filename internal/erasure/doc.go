// Package erasure cuts bodies into rows of a Reed–Solomon code and joins them again.
//
// A body is cut into k pieces of equal length, the last of them padded with zeros; these are the rows 0 to k−1. The
// rows after them are computed, and any k distinct rows give the body. The matrix is the library's default one
// (Vandermonde, made systematic), whose row r depends only on k and r. So members can be added while the others keep
// their rows, and the number of rows need not be known.
//
// Rows have no checksum: the caller must compare a joined body with its digest.
//
// How to read it:
//
//	erasure.go   Cut, Join, Derive
//	codec.go     the library's encoders, created once
//	errors.go    errors of rows
//
// May import: nothing of braid.
package erasure
