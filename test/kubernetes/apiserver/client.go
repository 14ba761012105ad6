package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// requestTimeout bounds a request of the load: a little more than kube-apiserver itself gives to a write.
const requestTimeout = 40 * time.Second

// client sends requests to kube-apiserver, as an administrator.
type client struct {
	url, token string
	http       *http.Client
}

// statusError is an answer of kube-apiserver that reports a failure.
type statusError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *statusError) Error() string { return fmt.Sprintf("HTTP %d: %s", e.Code, e.Message) }

// codeOf returns the HTTP code of a failed request, 0 if there was no answer.
func codeOf(err error) int {
	if status := (*statusError)(nil); errors.As(err, &status) {
		return status.Code
	}
	return 0
}

// refused reports whether a request that failed certainly had no effect.
func refused(err error) bool {
	return codeOf(err) == http.StatusTooManyRequests || errors.Is(err, syscall.ECONNREFUSED)
}

// do sends a request and decodes the answer, unless that is nil. The error is a [*statusError] if
// kube-apiserver answered.
func (c *client) do(ctx context.Context, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	response, err := c.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if answer == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// open sends a request and returns the answer, which the caller reads and closes. The request ends with ctx.
func (c *client) open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var sent io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, sent)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := c.http.Do(request)
	if err != nil || response.StatusCode < http.StatusMultipleChoices {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	status := &statusError{}
	said, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16)) // as far as it can be read
	if json.Unmarshal(said, status) != nil {
		status.Message = string(said)
	}
	status.Code = response.StatusCode
	return nil, status
}

// failures counts requests that failed, by the HTTP code or [noAnswer].
type failures struct {
	mu     sync.Mutex
	counts map[string]int
	sample map[string]string // the first of each
}

// noAnswer is the kind of a failure without an answer.
const noAnswer = "no answer"

// add counts a failure.
func (f *failures) add(err error) {
	kind := noAnswer
	if code := codeOf(err); code != 0 {
		kind = strconv.Itoa(code)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		f.counts, f.sample = map[string]int{}, map[string]string{}
	}
	if f.counts[kind]++; f.counts[kind] == 1 {
		f.sample[kind] = err.Error()
	}
}

// until sends a request, again after a failure, until it succeeds. An answer with the code done, if that is not 0, is a
// success, too: an earlier request had the effect. The error is that of ctx.
func (c *client) until(ctx context.Context, f *failures, method, path string, body any, done int) error {
	const pause = 300 * time.Millisecond
	for {
		err := c.do(ctx, method, path, body, nil)
		if err == nil || done != 0 && codeOf(err) == done {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s %s: %w: %w", method, path, ctx.Err(), err)
		}
		f.add(err)
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// sleep waits, and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
