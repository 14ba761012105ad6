//go:build !linux && !darwin && !dragonfly && !freebsd

package vfs

import "errors"

func (osFS) FreeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }
