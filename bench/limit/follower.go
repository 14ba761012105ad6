package limit

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
)

// ahead bounds the batches that a follower has received and not written.
const ahead = 2 * inFlight

// follower receives batches in one goroutine, which also applies them, and writes them in another.
type follower struct {
	*member
	conn  net.Conn // to the leader
	write chan *batch
}

// receive reads batches until the connection ends, and applies those that are committed.
func (f *follower) receive(quit <-chan struct{}) error {
	defer close(f.write)
	r := bufio.NewReaderSize(f.conn, 256<<10)
	var last uint64
	var waiting []*batch // for a majority
	for {
		b, err := readBatch(r, 2) // store, and this function
		if err != nil {
			return err
		}
		committed := b.committed
		if b.commands > 0 {
			if b.seq != last+1 {
				return fmt.Errorf("batch %d came after batch %d", b.seq, last)
			}
			last, waiting = b.seq, append(waiting, b)
			select {
			case f.write <- b:
			case <-quit:
				return nil
			}
		}
		n := 0
		for ; n < len(waiting) && waiting[n].seq <= committed; n++ {
			f.applyBatch(waiting[n])
			waiting[n].release()
		}
		waiting = append(waiting[:0], waiting[n:]...)
	}
}

// store makes batches durable and acknowledges them. One sync is for all that came during the last one.
func (f *follower) store() error {
	var ack [ackBytes]byte
	for b := range f.write {
		for more := true; more; {
			if err := f.log.write(b); err != nil {
				return err
			}
			binary.LittleEndian.PutUint64(ack[:], b.seq)
			b.release()
			select {
			case b, more = <-f.write:
			default:
				more = false
			}
		}
		if err := f.log.sync(); err != nil {
			return err
		}
		if err := f.transmit(f.conn, ack[:]); err != nil {
			return err
		}
	}
	return nil
}
