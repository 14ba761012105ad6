package body

import (
	"container/list"

	"github.com/braidlog/braid/protocol"
)

// BodyCache keeps whole bodies that were used lately, bounded in bytes. What it hands out is
// shared and must not be changed. It is a pure rule; not safe for concurrent use.
type BodyCache struct {
	limit int64
	bytes int64 // of the bodies in order; ≤ limit
	byRef map[protocol.BodyRef]*list.Element
	order *list.List // of cachedBody, the last used in front
}

type cachedBody struct {
	ref  protocol.BodyRef
	body []byte
}

// NewBodyCache returns an empty cache.
func NewBodyCache(limit int64) *BodyCache {
	return &BodyCache{limit: limit, byRef: map[protocol.BodyRef]*list.Element{}, order: list.New()}
}

// Committed keeps the bodies of committed entries that are in memory whole. They are likely to be
// read soon.
func (c *BodyCache) Committed(instance protocol.InstanceID, entries []protocol.Entry) {
	for i := range entries {
		if e := &entries[i]; e.BodySize > 0 && len(e.Body) == int(e.BodySize) && e.Form == protocol.FormWhole {
			c.Add(e.Ref(instance), e.Body)
		}
	}
}

// Add keeps a body, if it fits at all.
func (c *BodyCache) Add(ref protocol.BodyRef, body []byte) {
	if at := c.byRef[ref]; at != nil {
		c.order.MoveToFront(at)
		return
	}
	if int64(len(body)) > c.limit {
		return
	}
	c.byRef[ref] = c.order.PushFront(cachedBody{ref, body})
	c.bytes += int64(len(body))
	for c.bytes > c.limit {
		c.remove(c.order.Back())
	}
}

// Get returns a body, or nil.
func (c *BodyCache) Get(ref protocol.BodyRef) []byte {
	at := c.byRef[ref]
	if at == nil {
		return nil
	}
	c.order.MoveToFront(at)
	return at.Value.(cachedBody).body
}

// Drop forgets a body that no one will ask for any more.
func (c *BodyCache) Drop(ref protocol.BodyRef) {
	if at := c.byRef[ref]; at != nil {
		c.remove(at)
	}
}

func (c *BodyCache) remove(at *list.Element) {
	b := c.order.Remove(at).(cachedBody)
	delete(c.byRef, b.ref)
	c.bytes -= int64(len(b.body))
}
