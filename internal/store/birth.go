package store

import (
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// birthKey names in the meta bucket the state that Import put into the database.
var birthKey = []byte("braidBirth")

// Birth names the state with which the store began before its first command: the digest of the imported snapshot,
// equal on all members that imported the same one. "": it began empty.
func (s *Store) Birth() string { return s.birth }

func readBirth(be backend.Backend) string {
	tx := be.ReadTx()
	tx.RLock()
	defer tx.RUnlock()
	if _, values := tx.UnsafeRange(schema.Meta, birthKey, nil, 1); len(values) > 0 {
		return string(values[0])
	}
	return ""
}
