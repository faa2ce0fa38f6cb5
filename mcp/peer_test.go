package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"basalt"
)

func TestTheSocketIsForThisUserAloneAndGoesWithItsOwner(t *testing.T) {
	// Longer than the path of a socket may be.
	path := filepath.Join(t.TempDir(), strings.Repeat("long", 40), "m")
	owner, other := NewPeer(path, basalt.Process), NewPeer(path, basalt.Process)
	ask[rememberResult](t, owner, "s", "remember", rememberArguments{Text: "kept"})
	info, err := os.Stat(path + ".sock")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	if stats := ask[statsResult](t, other, "s", "stats", statsArguments{}); stats.Notes != 1 || other.memory != nil {
		t.Errorf("%+v", stats)
	}
	if err := owner.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path + ".sock"); err == nil {
		t.Error("the socket is still there")
	}
	if stats := ask[statsResult](t, other, "s", "stats", statsArguments{}); stats.Notes != 1 || other.memory == nil {
		t.Errorf("%+v", stats)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if _, err := owner.Call(context.Background(), Request{Tool: "stats", Space: "s"}); err == nil {
		t.Error("a call after the end")
	}
}

func TestADatabaseThatAnotherProgramHasIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	store, err := basalt.Open(path, basalt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	peer := NewPeer(path, basalt.Process)
	defer peer.Close()
	peer.patience = 100 * time.Millisecond
	if _, err := peer.Call(context.Background(), Request{Tool: "stats", Space: "s"}); err == nil ||
		!strings.Contains(err.Error(), "If another program has it open, close that") {
		t.Error(err)
	}
	store.Close()
	if _, err := peer.Call(context.Background(), Request{Tool: "stats", Space: "s"}); err != nil {
		t.Error(err)
	}
}

// Owners that leave in order while others send changes: each change happens once.
func TestOwnersLeaveWhileOthersWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	const owners, changes = 5, 300
	var leaving sync.WaitGroup
	leaving.Add(1)
	writer := NewPeer(path, basalt.Process)
	peers := []*Peer{}
	for range owners {
		peers = append(peers, NewPeer(path, basalt.Process))
	}
	ask[statsResult](t, peers[0], "s", "stats", statsArguments{})
	go func() {
		defer leaving.Done()
		for i, peer := range peers {
			time.Sleep(20 * time.Millisecond)
			if i+1 < len(peers) {
				ask[statsResult](t, peers[i+1], "s", "stats", statsArguments{})
			}
			if err := peer.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	for i := range changes {
		entity := Entity{Name: strings.Repeat("e", 1+i%3) + string(rune('a'+i%26)) + time.Now().String(), EntityType: "t"}
		created := ask[entitiesArguments](t, writer, "s", "create_entities", entitiesArguments{[]Entity{entity}})
		if len(created.Entities) != 1 {
			t.Fatalf("change %d: %+v", i, created)
		}
	}
	leaving.Wait()
	if stats := ask[statsResult](t, writer, "s", "stats", statsArguments{}); stats.Entities != changes {
		t.Errorf("%+v", stats)
	}
	if err := writer.Close(); err != nil {
		t.Error(err)
	}
}
