package sums

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// find returns a bucket; false if there is none of this name.
func (p *Pages) find(name string) (b boltBucket, ok bool, err error) {
	buckets, err := p.Buckets()
	if err != nil {
		return b, false, err
	}
	for i := range buckets {
		if buckets[i].name == name {
			return buckets[i], true, nil
		}
	}
	return b, false, nil
}

// From visits the elements of a bucket from a key on, in order; none if there is no such bucket. visit's arguments are
// valid until it returns.
func (p *Pages) From(name string, from []byte, visit func(key, value []byte) error) error {
	b, ok, err := p.find(name)
	if err != nil || !ok {
		return err
	}
	return p.Tree(&b, from, visit)
}

// Get returns an element of a bucket; nil if there is none with this key.
func (p *Pages) Get(name string, key []byte) ([]byte, error) {
	k, value, err := p.First(name, key)
	if err != nil || !bytes.Equal(k, key) {
		return nil, err
	}
	return value, nil
}

// First returns the first element of a bucket from a key on; nil if there is none.
func (p *Pages) First(name string, from []byte) (key, value []byte, err error) {
	err = p.From(name, from, func(k, v []byte) error {
		key, value = append([]byte{}, k...), append([]byte{}, v...)
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return key, value, err
}

// Last returns the last element of a bucket; nil if there is none.
func (p *Pages) Last(name string) (key, value []byte, err error) {
	b, ok, err := p.find(name)
	if err != nil || !ok {
		return nil, nil, err
	}
	root := binary.LittleEndian.Uint64(b.entry)
	if root == 0 { // the bucket is in its entry
		err = p.Tree(&b, nil, func(k, v []byte) error {
			key, value = append(key[:0], k...), append(value[:0], v...)
			return nil
		})
		return key, value, err
	}
	for depth := range deepest {
		data, err := p.fetch(root, p.buffers[depth])
		if err != nil {
			return nil, nil, err
		}
		g, err := parse(root, data)
		if err != nil {
			return nil, nil, err
		}
		if !g.leaf {
			root = g.child(g.count - 1)
			continue
		}
		if g.count == 0 {
			return nil, nil, nil
		}
		v, _ := g.value(g.count - 1)
		return append([]byte{}, g.key(g.count-1)...), append([]byte{}, v...), nil
	}
	return nil, nil, &PageError{root, "the tree is too deep"}
}

// Names returns the names of all buckets.
func (p *Pages) Names() (names []string, err error) {
	buckets, err := p.Buckets()
	for i := range buckets {
		names = append(names, buckets[i].name)
	}
	return names, err
}

// PagesOfFile reads the pages of a database file that is not open for writing.
func PagesOfFile(f DatabaseFile) (*Pages, error) {
	meta, err := NewestMeta(f)
	if err != nil {
		return nil, fmt.Errorf("it is no database: %w", err)
	}
	return &Pages{File: f, Meta: meta}, nil
}
