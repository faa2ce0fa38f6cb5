package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"basalt"
)

// Peer shares one database between processes. The process that gets the database's lock is its owner: it serves a Unix
// socket beside the database. The others send it their calls, whole. When the owner ends, in whatever way, the lock is
// free: one of the others gets it and becomes the owner, and a call that was under way is sent again. A change has an
// id, under which the owner keeps the answer in the transaction of the change, so that it happens once.
type Peer struct {
	path       string
	durability basalt.Durability
	patience   time.Duration // How long a call waits for an owner; one may have to recover the database.

	mu       sync.Mutex
	memory   *Memory      // of the owner
	listener net.Listener // of the owner
	socket   *dirSocket
	client   *rpc.Client // of the others
	closed   bool
	calls    sync.WaitGroup // that the owner answers for others
	conns    map[net.Conn]bool
}

var errLeaving = errors.New("the process that has the database is leaving")

func newRequestID() string {
	var id [16]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

// NewPeer shares the database in a folder.
func NewPeer(path string, durability basalt.Durability) *Peer {
	return &Peer{path: path, durability: durability, patience: 30 * time.Second, conns: map[net.Conn]bool{}}
}

// Call runs a tool, here or in the process that has the database.
func (p *Peer) Call(ctx context.Context, request Request) (Reply, error) {
	deadline := time.Now().Add(p.patience)
	for pause := time.Millisecond; ; pause = min(pause*2, 50*time.Millisecond) {
		reply, err := p.attempt(ctx, request)
		if !isTransient(err) {
			return reply, err
		}
		if time.Now().After(deadline) {
			return Reply{}, fmt.Errorf("the database %s cannot be reached: %w. If another program has it open, close that", p.path, err)
		}
		select {
		case <-ctx.Done():
			return Reply{}, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// transient is an error after which there may be another owner.
type transient struct{ error }

func isTransient(err error) bool {
	var t transient
	return errors.As(err, &t)
}

func (p *Peer) attempt(ctx context.Context, request Request) (Reply, error) {
	memory, client, err := p.connect()
	if err != nil {
		return Reply{}, err
	}
	if memory != nil {
		return memory.Call(ctx, request)
	}
	var reply Reply
	done := client.Go("Owner.Call", request, &reply, nil).Done
	select {
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	case call := <-done:
		err = call.Error
	}
	var answered rpc.ServerError
	switch {
	case err == nil:
		return reply, nil
	case errors.As(err, &answered) && string(answered) != errLeaving.Error():
		return Reply{}, err
	}
	p.disconnect(client)
	return Reply{}, transient{err}
}

// connect gives the memory of this process, or a connection to the owner.
func (p *Peer) connect() (*Memory, *rpc.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, nil, errors.New("the server is ending")
	case p.memory != nil:
		return p.memory, nil, nil
	case p.client != nil:
		return nil, p.client, nil
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return nil, nil, err
	}
	if p.socket == nil {
		socket, err := newDirSocket(p.path + ".sock")
		if err != nil {
			return nil, nil, err
		}
		p.socket = socket
	}
	// First the socket: an attempt to open a database that another process has costs more.
	if conn, err := p.socket.dial(); err == nil {
		p.client = rpc.NewClient(conn)
		return nil, p.client, nil
	}
	memory, err := OpenMemory(p.path, p.durability)
	if errors.Is(err, basalt.Busy) {
		return nil, nil, transient{err}
	}
	if err != nil {
		return nil, nil, err
	}
	listener, err := p.socket.listen()
	if err != nil {
		memory.Close()
		return nil, nil, err
	}
	p.memory, p.listener = memory, listener
	go p.serve(listener, memory)
	return memory, nil, nil
}

func (p *Peer) disconnect(client *rpc.Client) {
	client.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == client {
		p.client = nil
	}
}

// Owner is what the others call.
type Owner struct {
	peer   *Peer
	memory *Memory
}

// Call answers a request of another process.
func (o *Owner) Call(request Request, reply *Reply) error {
	o.peer.mu.Lock()
	if o.peer.closed {
		o.peer.mu.Unlock()
		return errLeaving
	}
	o.peer.calls.Add(1)
	o.peer.mu.Unlock()
	defer o.peer.calls.Done()
	answer, err := o.memory.Call(context.Background(), request)
	*reply = answer
	return err
}

func (p *Peer) serve(listener net.Listener, memory *Memory) {
	server := rpc.NewServer()
	server.Register(&Owner{p, memory})
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // Out of descriptors, say.
			continue
		}
		if !isSameUser(conn) || !p.keep(conn) {
			conn.Close()
			continue
		}
		go func() {
			server.ServeConn(conn)
			p.mu.Lock()
			delete(p.conns, conn)
			p.mu.Unlock()
		}()
	}
}

func (p *Peer) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.conns[conn] = true
	}
	return !p.closed
}

// Close answers the calls that are under way, and lets go of the database, for another process to take over.
func (p *Peer) Close() error {
	p.mu.Lock()
	p.closed = true
	memory, listener, client := p.memory, p.listener, p.client
	p.mu.Unlock()
	if client != nil {
		client.Close()
	}
	if memory == nil {
		return nil
	}
	listener.Close()
	p.calls.Wait()
	p.mu.Lock()
	for conn := range p.conns {
		conn.Close()
	}
	p.mu.Unlock()
	return memory.Close()
}

// isSameUser tells whether the other end runs as this user.
func isSameUser(conn net.Conn) bool {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false
	}
	same := false
	raw.Control(func(fd uintptr) {
		credentials, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		same = err == nil && int(credentials.Uid) == os.Getuid()
	})
	return same
}

// dirSocket is a Unix socket by its folder, since the path of a socket has at most 107 bytes.
type dirSocket struct {
	dir  *os.File
	name string
}

func newDirSocket(path string) (*dirSocket, error) {
	dir, err := os.Open(filepath.Dir(path))
	return &dirSocket{dir, filepath.Base(path)}, err
}

func (s *dirSocket) address() *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", s.dir.Fd(), s.name)}
}

func (s *dirSocket) dial() (net.Conn, error) { return net.DialUnix("unix", nil, s.address()) }

// listen makes the socket, for this user alone. Only the process with the database's lock calls it: a socket that is
// there is of one that was killed.
func (s *dirSocket) listen() (net.Listener, error) {
	address := s.address()
	if err := os.Remove(address.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// It is made under another name, for there is a moment before the mode is set.
	making := &net.UnixAddr{Net: "unix", Name: address.Name + ".new"}
	os.Remove(making.Name)
	listener, err := net.ListenUnix("unix", making)
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	err = os.Chmod(making.Name, 0o600)
	if err == nil {
		err = os.Rename(making.Name, address.Name)
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	return &unlinkingListener{listener, address.Name}, nil
}

// unlinkingListener removes the socket's name first.
type unlinkingListener struct {
	*net.UnixListener
	name string
}

func (l *unlinkingListener) Close() error {
	os.Remove(l.name)
	return l.UnixListener.Close()
}
