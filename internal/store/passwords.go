package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// ErrTooManyPasswords is the answer to a login, and to a request with a new password, if too many others
// are being checked. Nothing happened; a retry is safe.
var ErrTooManyPasswords = errors.New("store: too many passwords to check at once")

// Checking a password needs a core for tens of milliseconds, on purpose (bcrypt). It happens before anything is
// ordered, so applying never waits for it, but any client that can connect can cause it. So at most half of the cores
// do that, others wait in turn, and neither their number nor their time is without a limit.
const (
	mostPasswords = 1024
	passwordWait  = 30 * time.Second
)

// passwords bounds how many passwords are checked or hashed at once, and knows some that were right.
type passwords struct {
	turns  *turns
	client func(context.Context) string // Options.Client
	wait   time.Duration
	known  knownPasswords
}

func newPasswords(client func(context.Context) string) *passwords {
	cores := max(1, runtime.GOMAXPROCS(0)/2)
	p := &passwords{turns: newTurns(cores, mostPasswords, mostPasswords/2), client: client, wait: passwordWait}
	_, _ = rand.Read(p.known.key[:]) // never fails
	return p
}

// run runs a check when it is its turn. Errors: [ErrTooManyPasswords], ctx's, and check's.
func (p *passwords) run(ctx context.Context, check func() error) error {
	within, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	if err := p.turns.begin(within, p.client(ctx)); err != nil {
		if ctx.Err() == nil {
			return ErrTooManyPasswords
		}
		return err
	}
	defer p.turns.end()
	return check()
}

// hash hashes a new password.
func (r *Rights) hash(ctx context.Context, password string) (hashed string, err error) {
	err = r.passwords.run(ctx, func() error {
		b, err := bcrypt.GenerateFromPassword([]byte(password), r.auth.BcryptCost())
		hashed = base64.StdEncoding.EncodeToString(b)
		return err
	})
	return hashed, err
}

// Login is the result of a checked password, from which a token is made.
type Login struct {
	// Command makes the token; propose it.
	Command []byte
	// Revision of the users when the password was checked. If [Store.Auth]'s revision is
	// another one once Command is applied, the password may be out of date: login again.
	Revision uint64
}

// Login checks a password. Read linearizably before. Errors: etcd's if it is wrong, [ErrTooManyPasswords], ctx's.
func (r *Rights) Login(ctx context.Context, asked *pb.AuthenticateRequest) (login Login, err error) {
	if login.Revision, err = r.checkPassword(ctx, asked.Name, asked.Password); err != nil {
		return Login{}, err
	}
	token, err := r.auth.GenTokenPrefix()
	if err != nil {
		return Login{}, err
	}
	login.Command, err = encode([]byte{kindRequest}, &pb.InternalRaftRequest{
		Authenticate: &pb.InternalAuthenticateRequest{Name: asked.Name, SimpleToken: token},
	})
	return login, err
}

// checkPassword returns the revision of the users by which a password is right. Many clients of one user, or a page
// that is loaded over and over, are checked once, and do not wait once their password is known.
func (r *Rights) checkPassword(ctx context.Context, user, password string) (revision uint64, err error) {
	known := &r.passwords.known
	digest := known.digest(user, password)
	right := func() bool {
		// The revision changes with each change of a user, and when authentication is turned off.
		revision = r.auth.Revision()
		return known.has(digest, revision) && r.auth.IsAuthEnabled()
	}
	if right() {
		return revision, nil
	}
	err = r.passwords.run(ctx, func() (err error) {
		if right() {
			return nil
		}
		r.swap.RLock() // Restore closes the database that has the user
		defer r.swap.RUnlock()
		if revision, err = r.auth.CheckPassword(user, password); err == nil {
			known.note(digest, revision)
		}
		return err
	})
	return revision, err
}

// mostKnown bounds how many passwords knownPasswords remembers.
const mostKnown = 1024

// knownPasswords remembers which passwords were right at a revision of users and roles, as digests under a key
// of this process.
type knownPasswords struct {
	key [sha256.Size]byte

	mu       sync.Mutex
	revision uint64
	right    map[[sha256.Size]byte]struct{}
}

func (k *knownPasswords) digest(user, password string) (d [sha256.Size]byte) {
	h := hmac.New(sha256.New, k.key[:])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(user))))
	h.Write([]byte(user))
	h.Write([]byte(password))
	h.Sum(d[:0])
	return d
}

func (k *knownPasswords) has(digest [sha256.Size]byte, revision uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.right[digest]
	return ok && k.revision == revision
}

func (k *knownPasswords) note(digest [sha256.Size]byte, revision uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.right == nil || k.revision != revision || len(k.right) >= mostKnown {
		k.right = map[[sha256.Size]byte]struct{}{}
	}
	k.revision = revision
	k.right[digest] = struct{}{}
}
