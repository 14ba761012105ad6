package mapkv

import (
	"encoding/binary"
	"errors"
)

// operation is the kind of a command.
type operation byte

const (
	opPut operation = 1 + iota
	opDelete
	opAppend // to the log alone
	opExtend // a value by a chunk
	opGet    // the value at this place in the log
)

// errCommand indicates bytes that are not a command of this package.
var errCommand = errors.New("mapkv: not a command")

// command returns an operation, its key and value as one command: operation, length of the key as a uvarint, key,
// value. The value is omitted if it is the command's body.
func command(op operation, key string, value []byte) []byte {
	c := make([]byte, 0, 1+binary.MaxVarintLen32+len(key)+len(value))
	c = append(c, byte(op))
	c = binary.AppendUvarint(c, uint64(len(key)))
	c = append(c, key...)
	return append(c, value...)
}

// KeyIn returns the hash of a command's key, as its protocol gets it.
func KeyIn(command []byte) uint64 {
	_, key, _, _ := parse(command) // an invalid command has no key
	return hash(string(key))
}

// parse splits a command; key and value are parts of it.
func parse(c []byte) (op operation, key, value []byte, err error) {
	if len(c) < 2 {
		return 0, nil, nil, errCommand
	}
	op = operation(c[0])
	n, used := binary.Uvarint(c[1:])
	if op < opPut || op > opGet || used <= 0 || n > uint64(len(c)-1-used) {
		return 0, nil, nil, errCommand
	}
	c = c[1+used:]
	return op, c[:n], c[n:], nil
}
