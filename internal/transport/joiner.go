package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
)

// A joiner is to become a member and knows neither the cluster's id nor its own: only where members listen. It passes
// their TLS, asks one question in place of the handshake, and is hung up on after the answer. Question and answer are
// opaque here.

const (
	// questionMagic is "brd" and the end of a line, so that a server of HTTP, which may listen where the joiner was
	// configured to ask, refuses it at once.
	questionMagic = 0x0a_64_72_62
	answerMagic   = 0x61_64_72_62
	// questionVersion is of this exchange alone, so that members of other versions of the links' formats
	// can answer.
	questionVersion = 1
	// talkHead is magic, version, whether there is an answer, reserved, and the length of what follows.
	// After that comes a checksum of all.
	talkHead    = 4 + 2 + 1 + 1 + 4
	maxQuestion = 16 << 10
	maxAnswer   = 4 << 20
)

// ErrNoAnswer is returned to a joiner that is not known to the member that it asked.
var ErrNoAnswer = errors.New("transport: the member that was asked knows nobody like that")

// encodeTalk encodes a question or an answer.
func encodeTalk(magic uint32, ok bool, text []byte) []byte {
	b := make([]byte, 0, talkHead+len(text)+4)
	b = binary.LittleEndian.AppendUint32(b, magic)
	b = binary.LittleEndian.AppendUint16(b, questionVersion)
	answered := byte(0)
	if ok {
		answered = 1
	}
	b = append(b, answered, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = append(b, text...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readTalk reads what talk encoded, of at most this many bytes.
func readTalk(r io.Reader, magic uint32, limit int) (ok bool, text []byte, err error) {
	head := make([]byte, talkHead)
	if _, err := io.ReadFull(r, head); err != nil {
		return false, nil, err
	}
	n := int(binary.LittleEndian.Uint32(head[8:]))
	switch {
	case binary.LittleEndian.Uint32(head) != magic:
		return false, nil, fmt.Errorf("looks like %s", looksLike(head))
	case binary.LittleEndian.Uint16(head[4:]) != questionVersion:
		return false, nil, fmt.Errorf("version %d, this is %d", binary.LittleEndian.Uint16(head[4:]), questionVersion)
	case n > limit:
		return false, nil, fmt.Errorf("%d bytes, at most %d are read", n, limit)
	}
	rest := make([]byte, n+4)
	if _, err := io.ReadFull(r, rest); err != nil {
		return false, nil, err
	}
	sum := crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, rest[:n])
	if sum != binary.LittleEndian.Uint32(rest[n:]) {
		return false, nil, errors.New("wrong checksum")
	}
	return head[6] == 1, rest[:n], nil
}

// isQuestion reports whether a connection begins with a joiner's question.
func isQuestion(begin []byte) bool {
	return len(begin) >= 4 && binary.LittleEndian.Uint32(begin) == questionMagic
}

// answerJoiner answers a question, of which begin was read already. It returns an error in any case: the
// connection ends.
func (t *Transport) answerJoiner(conn net.Conn, begin []byte) error {
	_, question, err := readTalk(io.MultiReader(bytes.NewReader(begin), conn), questionMagic, maxQuestion)
	if err != nil {
		return fmt.Errorf("a question from %s: %w", conn.RemoteAddr(), err)
	}
	var answer []byte
	if t.opt.Answer != nil {
		answer = t.opt.Answer(question)
	}
	if len(answer) > maxAnswer {
		return fmt.Errorf("the answer to %s would have %d bytes", conn.RemoteAddr(), len(answer))
	}
	if _, err := conn.Write(encodeTalk(answerMagic, answer != nil, answer)); err != nil {
		return err
	}
	if answer == nil {
		return fmt.Errorf("%s asked as a new member that is not known here", conn.RemoteAddr())
	}
	return errAnswered
}

// errAnswered ends the connection of a joiner that was answered.
var errAnswered = errors.New("transport: answered")

// Ask asks a member at an address a question on behalf of a joiner, which is not a member yet. Config is as
// [Options].TLS, and dial as [Options].Dial. [ErrNoAnswer]: the member does not know who asks. After any other error
// nothing is known: the address may be wrong, or be of a member that does not run.
func Ask(ctx context.Context, addr string, dial Dial, config *tls.Config, question []byte) ([]byte, error) {
	if len(question) > maxQuestion {
		return nil, fmt.Errorf("transport: a question of %d bytes, at most %d", len(question), maxQuestion)
	}
	_, out, err := mutual(config)
	if err != nil {
		return nil, err
	}
	conn, err := dial.within(defaultTiming.dial, net.Dialer{})(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := deadline(conn, defaultTiming.handshake); err != nil {
		return nil, err
	}
	if conn, err = clientSide(conn, out, addr); err != nil {
		return nil, err
	}
	if _, err := conn.Write(encodeTalk(questionMagic, true, question)); err != nil {
		return nil, fmt.Errorf("transport: ask %s: %w", addr, err)
	}
	ok, answer, err := readTalk(conn, answerMagic, maxAnswer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("transport: no answer from %s: %w", addr, err)
	case !ok:
		return nil, fmt.Errorf("%s: %w", addr, ErrNoAnswer)
	}
	return answer, nil
}
