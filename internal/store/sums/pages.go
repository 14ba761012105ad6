package sums

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
)

// The pages of a bbolt database as they lie in its file. They are read here with every bound
// checked, and not through a map of the file. bbolt itself trusts every page, so a damaged one
// would end the process.
const (
	pageHeader  = 16
	pageElement = 16
	bucketSize  = 16 // of a bucket's root and sequence, before an inline page

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketLeaf   = 0x01

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaSize    = 64
	noFreelist  = math.MaxUint64
)

// PageError names a page of a database that is not what bbolt would have written.
type PageError struct {
	Page uint64
	What string
}

func (e *PageError) Error() string { return fmt.Sprintf("page %d of the database: %s", e.Page, e.What) }

// boltMeta is where a database begins: one of its two first pages.
type boltMeta struct {
	PageSize       int
	root, freelist uint64
	Pages          uint64 // there are, in use or free
	tx             uint64
}

// parseMeta parses a meta page; false if it is none or damaged.
func parseMeta(b []byte) (m boltMeta, ok bool) {
	if len(b) < pageHeader+metaSize {
		return m, false
	}
	b = b[pageHeader : pageHeader+metaSize]
	sum := fnv.New64a()
	sum.Write(b[:metaSize-8])
	order := binary.LittleEndian
	m = boltMeta{
		PageSize: int(order.Uint32(b[8:])), root: order.Uint64(b[16:]), freelist: order.Uint64(b[32:]),
		Pages: order.Uint64(b[40:]), tx: order.Uint64(b[48:]),
	}
	ok = order.Uint32(b) == metaMagic && order.Uint32(b[4:]) == metaVersion && order.Uint64(b[56:]) == sum.Sum64() &&
		m.PageSize >= 1024 && m.PageSize <= 64<<10 && m.root < m.Pages
	return m, ok
}

// NewestMeta finds out with which meta page bbolt would open a file.
func NewestMeta(f io.ReaderAt) (m boltMeta, err error) {
	b := make([]byte, 4096)
	if n, err := readAt(f, b, 0); err != nil {
		return m, err
	} else if m, ok := parseMeta(b[:n]); ok {
		second := make([]byte, pageHeader+metaSize)
		if _, err := readAt(f, second, int64(m.PageSize)); err != nil {
			return m, err
		}
		if o, ok := parseMeta(second); ok && o.tx > m.tx {
			m = o
		}
		return m, nil
	}
	for size := int64(1024); size <= 64<<10; size *= 2 {
		if n, err := readAt(f, b, size); err != nil {
			return m, err
		} else if m, ok := parseMeta(b[:n]); ok && int64(m.PageSize) == size {
			return m, nil
		}
	}
	return m, &PageError{0, "neither of the first two pages is good"}
}

// Pages reads the pages of a database as of one of its transactions. Each page in use may be visited only once.
type Pages struct {
	File io.ReaderAt
	Meta boltMeta
	// Visited are the pages that were visited already; nil: not counted.
	Visited []uint64
	buffers [deepest][]byte // of the pages from the root to the present one
	Read    int64           // bytes
}

// visit marks pages as visited.
func (p *Pages) visit(id, n uint64) error {
	for i := id; i < id+n && p.Visited != nil; i++ {
		if p.Visited[i/64]&(1<<(i%64)) != 0 {
			return &PageError{i, "is used twice"}
		}
		p.Visited[i/64] |= 1 << (i % 64)
	}
	return nil
}

// page is a page with those that continue it.
type page struct {
	id    uint64
	leaf  bool
	count int
	data  []byte
}

func (p *Pages) fetch(id uint64, into []byte) ([]byte, error) {
	size := p.Meta.PageSize
	if id < 2 || id >= p.Meta.Pages {
		return nil, &PageError{id, fmt.Sprintf("is not one of %d pages", p.Meta.Pages)}
	}
	if cap(into) < size {
		into = make([]byte, size)
	}
	into = into[:size]
	if err := p.readAt(into, int64(id)*int64(size)); err != nil {
		return nil, err
	}
	order := binary.LittleEndian
	more := uint64(order.Uint32(into[12:]))
	switch {
	case order.Uint64(into) != id:
		return nil, &PageError{id, fmt.Sprintf("says that it is page %d", order.Uint64(into))}
	case more >= p.Meta.Pages-id:
		return nil, &PageError{id, fmt.Sprintf("says that %d more belong to it", more)}
	}
	if err := p.visit(id, more+1); err != nil {
		return nil, err
	}
	if more == 0 {
		return into, nil
	}
	whole := make([]byte, size*int(more+1))
	copy(whole, into)
	return whole, p.readAt(whole[size:], int64(id+1)*int64(size))
}

func (p *Pages) readAt(b []byte, at int64) error {
	p.Read += int64(len(b))
	n, err := readAt(p.File, b, at)
	if err == nil && n < len(b) {
		return &PageError{uint64(at) / uint64(p.Meta.PageSize), "the file ends before it"}
	}
	return err
}

// parse checks a page's head and that its elements lie in it.
func parse(id uint64, data []byte) (g page, err error) {
	order := binary.LittleEndian
	flags := order.Uint16(data[8:])
	g = page{id: id, leaf: flags == leafPage, count: int(order.Uint16(data[10:])), data: data}
	switch {
	case flags != leafPage && flags != branchPage:
		return g, &PageError{id, fmt.Sprintf("has kind %x", flags)}
	case pageHeader+g.count*pageElement > len(data):
		return g, &PageError{id, fmt.Sprintf("says that it has %d elements", g.count)}
	case !g.leaf && g.count == 0:
		return g, &PageError{id, "leads nowhere"}
	}
	var before []byte
	for i := range g.count {
		at := pageHeader + i*pageElement
		e := data[at : at+pageElement]
		var begin, size uint64
		if g.leaf {
			begin = uint64(order.Uint32(e[4:]))
			size = uint64(order.Uint32(e[8:])) + uint64(order.Uint32(e[12:]))
		} else {
			begin, size = uint64(order.Uint32(e)), uint64(order.Uint32(e[4:]))
		}
		if begin < uint64((g.count-i)*pageElement) || uint64(at)+begin+size > uint64(len(data)) {
			return g, &PageError{id, fmt.Sprintf("element %d is not in it", i)}
		}
		key := g.key(i)
		if i > 0 && bytes.Compare(before, key) >= 0 {
			return g, &PageError{id, fmt.Sprintf("the keys %x and %x are not in order", before, key)}
		}
		before = key
	}
	return g, nil
}

func (g *page) key(i int) []byte {
	at := pageHeader + i*pageElement
	order := binary.LittleEndian
	if g.leaf {
		begin := at + int(order.Uint32(g.data[at+4:]))
		return g.data[begin : begin+int(order.Uint32(g.data[at+8:]))]
	}
	begin := at + int(order.Uint32(g.data[at:]))
	return g.data[begin : begin+int(order.Uint32(g.data[at+4:]))]
}

// value returns a leaf's value and its flags.
func (g *page) value(i int) ([]byte, uint32) {
	at := pageHeader + i*pageElement
	order := binary.LittleEndian
	begin := at + int(order.Uint32(g.data[at+4:])) + int(order.Uint32(g.data[at+8:]))
	return g.data[begin : begin+int(order.Uint32(g.data[at+12:]))], order.Uint32(g.data[at:])
}

func (g *page) child(i int) uint64 {
	return binary.LittleEndian.Uint64(g.data[pageHeader+i*pageElement+8:])
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// deepest is more levels than a tree of pages can have.
const deepest = 64

// walk visits the leaves' elements of the tree at a page, from a key on, in order. low and
// high bound its keys; nil: no bound. visit's arguments are valid until it returns.
func (p *Pages) walk(id uint64, from, low, high []byte, depth int,
	visit func(key, value []byte, flags uint32) error) error {
	if depth >= deepest {
		return &PageError{id, "the tree is too deep"}
	}
	data, err := p.fetch(id, p.buffers[depth])
	if err != nil {
		return err
	}
	p.buffers[depth] = data[:p.Meta.PageSize]
	g, err := parse(id, data)
	if err != nil {
		return err
	}
	return p.walkPage(&g, from, low, high, depth, visit)
}

func (p *Pages) walkPage(g *page, from, low, high []byte, depth int,
	visit func(key, value []byte, flags uint32) error) error {
	if g.count > 0 && (low != nil && bytes.Compare(g.key(0), low) < 0 ||
		high != nil && bytes.Compare(g.key(g.count-1), high) >= 0) {
		return &PageError{g.id, "has keys that belong elsewhere"}
	}
	for i := range g.count {
		key := g.key(i)
		if g.leaf {
			if bytes.Compare(key, from) < 0 {
				continue
			}
			value, flags := g.value(i)
			if err := visit(key, value, flags); err != nil {
				return err
			}
			continue
		}
		next := high
		if i+1 < g.count {
			next = g.key(i + 1)
		}
		if next != nil && bytes.Compare(next, from) <= 0 {
			continue
		}
		if err := p.walk(g.child(i), from, key, next, depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

// boltBucket is a bucket's entry in the tree of buckets.
type boltBucket struct {
	name  string
	entry []byte
}

// Buckets lists all buckets.
func (p *Pages) Buckets() (out []boltBucket, err error) {
	err = p.walk(p.Meta.root, nil, nil, nil, 0, func(name, value []byte, flags uint32) error {
		if flags != bucketLeaf || len(value) < bucketSize {
			return &PageError{p.Meta.root, fmt.Sprintf("%q is no bucket", name)}
		}
		out = append(out, boltBucket{string(name), bytes.Clone(value)})
		return nil
	})
	return out, err
}

// Tree visits the elements of a bucket from a key on. A walk may be ended with errEnough.
func (p *Pages) Tree(b *boltBucket, from []byte, visit func(key, value []byte) error) error {
	name, entry := b.name, b.entry
	plain := func(key, value []byte, flags uint32) error {
		if flags != 0 {
			return &PageError{p.Meta.root, fmt.Sprintf("key %x of bucket %q is marked %x", key, name, flags)}
		}
		return visit(key, value)
	}
	root := binary.LittleEndian.Uint64(entry)
	if root != 0 {
		return p.walk(root, from, nil, nil, 0, plain)
	}
	inline := entry[bucketSize:]
	if len(inline) < pageHeader {
		return &PageError{p.Meta.root, fmt.Sprintf("bucket %q is cut off", name)}
	}
	g, err := parse(0, inline)
	if err == nil && !g.leaf {
		err = &PageError{p.Meta.root, fmt.Sprintf("bucket %q is no leaf", name)}
	}
	if err != nil {
		return err
	}
	return p.walkPage(&g, from, nil, nil, 0, plain)
}

// free checks the list of free pages: what is in use must not be on it.
func (p *Pages) free() error {
	id := p.Meta.freelist
	if id == noFreelist {
		return nil
	}
	data, err := p.fetch(id, nil)
	if err != nil {
		return err
	}
	order := binary.LittleEndian
	at, count := pageHeader, uint64(order.Uint16(data[10:]))
	if count == math.MaxUint16 {
		count = order.Uint64(data[at:])
		at += 8
	}
	if order.Uint16(data[8:]) != freelistPage || count > uint64(len(data)-at)/8 {
		return &PageError{id, "is no list of free pages"}
	}
	for ; count > 0; count-- {
		page := order.Uint64(data[at:])
		at += 8
		if page < 2 || page >= p.Meta.Pages {
			return &PageError{id, fmt.Sprintf("lists page %d of %d as free", page, p.Meta.Pages)}
		}
		if err := p.visit(page, 1); err != nil {
			return fmt.Errorf("free: %w", err)
		}
	}
	return nil
}

// All calls bucket with the name of each bucket, and then key with each of its keys, in order.
func (p *Pages) All(bucket func(name []byte) error, key func(key, value []byte) error) error {
	buckets, err := p.Buckets()
	if err != nil {
		return err
	}
	for i := range buckets {
		if err := bucket([]byte(buckets[i].name)); err != nil {
			return err
		}
		if err := p.Tree(&buckets[i], nil, key); err != nil {
			return err
		}
	}
	return nil
}
