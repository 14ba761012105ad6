package replica

import (
	"container/list"
	"sync"

	"github.com/braidlog/braid/protocol"
)

// bodyCache keeps whole bodies that were used lately, bounded in bytes. What it hands out is
// shared and must not be changed. Its methods are safe for concurrent use.
type bodyCache struct {
	limit int64

	mu    sync.Mutex
	bytes int64 // of the bodies in order; ≤ limit
	byRef map[protocol.BodyRef]*list.Element
	order *list.List // of cachedBody, the last used in front
}

type cachedBody struct {
	ref  protocol.BodyRef
	body []byte
}

func newBodyCache(limit int64) *bodyCache {
	return &bodyCache{limit: limit, byRef: map[protocol.BodyRef]*list.Element{}, order: list.New()}
}

// add keeps a body, if it fits at all.
func (c *bodyCache) add(ref protocol.BodyRef, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
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

func (c *bodyCache) get(ref protocol.BodyRef) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.byRef[ref]
	if at == nil {
		return nil
	}
	c.order.MoveToFront(at)
	return at.Value.(cachedBody).body
}

// drop forgets a body that nobody will ask for any more.
func (c *bodyCache) drop(ref protocol.BodyRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.byRef[ref]; at != nil {
		c.remove(at)
	}
}

func (c *bodyCache) remove(at *list.Element) {
	b := c.order.Remove(at).(cachedBody)
	delete(c.byRef, b.ref)
	c.bytes -= int64(len(b.body))
}
