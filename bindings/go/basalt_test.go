package basalt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantValue(t testing.TB, want string, value []byte, found bool, err error) {
	t.Helper()
	if err != nil || !found || string(value) != want {
		t.Fatalf("got %q, %v, %v; want %q", value, found, err, want)
	}
}

func wantAbsent(t testing.TB, value []byte, found bool, err error) {
	t.Helper()
	if err != nil || found || value != nil {
		t.Fatalf("got %q, %v, %v; want none", value, found, err)
	}
}

func wantCode(t testing.TB, err error, code Code, subCode string) {
	t.Helper()
	var e *Error
	if !errors.Is(err, code) || !errors.As(err, &e) || e.SubCode != subCode || e.Message == "" {
		t.Fatalf("got %v; want %v (%s)", err, code, subCode)
	}
}

func eachStore(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Run("DB", func(t *testing.T) {
		s, err := Open(filepath.Join(t.TempDir(), "db"), Options{MemoryBudget: 16 << 20})
		must(t, err)
		test(t, s)
		must(t, s.Close())
	})
	t.Run("MemTable", func(t *testing.T) {
		s, err := NewMemTable(32 << 20)
		must(t, err)
		test(t, s)
		must(t, s.Close())
	})
}

func TestReadsAndWrites(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		large := bytes.Repeat([]byte("x"), 100_000)
		must(t, s.Put([]byte("a"), []byte("1")))
		must(t, s.Put(nil, []byte("of the empty key")))
		must(t, s.Put([]byte("empty"), nil))
		must(t, s.Put([]byte("large"), large))
		v, ok, err := s.Get([]byte("a"))
		wantValue(t, "1", v, ok, err)
		v, ok, err = s.Get([]byte{})
		wantValue(t, "of the empty key", v, ok, err)
		v, ok, err = s.Get([]byte("empty"))
		wantValue(t, "", v, ok, err)
		if v == nil {
			t.Fatal("an empty value is not nil")
		}
		v, ok, err = s.Get([]byte("large"))
		wantValue(t, string(large), v, ok, err)
		v, ok, err = s.Get([]byte("absent"))
		wantAbsent(t, v, ok, err)
		created, err := s.PutIfAbsent([]byte("a"), []byte("2"))
		if created || err != nil {
			t.Fatal(created, err)
		}
		must(t, s.Delete([]byte("a")))
		created, err = s.PutIfAbsent([]byte("a"), []byte("2"))
		if !created || err != nil {
			t.Fatal(created, err)
		}
		must(t, s.Add([]byte("n"), 5))
		must(t, s.Add([]byte("n"), -7))
		v, _, err = s.Get([]byte("n"))
		must(t, err)
		if n := int64(binary.LittleEndian.Uint64(v)); n != -2 {
			t.Fatal(n)
		}
		must(t, s.Append([]byte("list"), []byte("x")))
		must(t, s.Append([]byte("list"), []byte("y")))
		v, ok, err = s.Get([]byte("list"))
		wantValue(t, "xy", v, ok, err)
		wantCode(t, s.Put(make([]byte, 70_000), nil), InvalidArgument, "")
		must(t, s.Sync())
		must(t, s.Compact())
		json, err := s.Stats()
		if err != nil || json[0] != '{' {
			t.Fatal(string(json), err)
		}
	})
}

func TestExpiry(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		must(t, s.Put([]byte("soon"), nil, WriteOptions{TTL: 20 * time.Millisecond}))
		must(t, s.Put([]byte("later"), []byte("v"), WriteOptions{TTL: time.Hour}))
		must(t, s.Put([]byte("never"), []byte("v"), WriteOptions{TTL: NoTTL}))
		for deadline := time.Now().Add(30 * time.Second); ; {
			if _, found, err := s.Get([]byte("soon")); err != nil || time.Now().After(deadline) {
				t.Fatal(err)
			} else if !found {
				break
			}
		}
		e, err := s.GetEntry([]byte("later"))
		must(t, err)
		if left := time.Until(e.Expiry); left < 50*time.Minute || left > 70*time.Minute || e.Version == 0 {
			t.Fatal(e)
		}
		e, err = s.GetEntry([]byte("never"))
		if err != nil || !e.Expiry.IsZero() {
			t.Fatal(e, err)
		}
		e, err = s.GetEntry([]byte("absent"))
		if e != nil || err != nil {
			t.Fatal(e, err)
		}
		wantCode(t, s.Put([]byte("x"), nil, WriteOptions{TTL: -1}), InvalidArgument, "")
	})
}

func keysOf(t testing.TB, scan *Scan) (keys []string) {
	t.Helper()
	for key := range scan.All() {
		keys = append(keys, string(key))
	}
	must(t, scan.Err())
	return keys
}

func TestScan(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		var want []string
		for i := range 5000 {
			key := fmt.Sprintf("k/%05d", i)
			must(t, s.Put([]byte(key), bytes.Repeat([]byte{byte(i)}, i%100)))
			want = append(want, key)
		}
		must(t, s.Put([]byte("k/00100"), bytes.Repeat([]byte("y"), 200_000)))
		must(t, s.Put([]byte("z"), nil))
		under := Range{Prefix: []byte("k/")}
		if got := keysOf(t, s.Scan(under)); !slices.Equal(got, want) {
			t.Fatal(len(got))
		}
		under.Reverse = true
		got := keysOf(t, s.Scan(under))
		slices.Reverse(got)
		if !slices.Equal(got, want) {
			t.Fatal(len(got))
		}
		got = keysOf(t, s.Scan(Range{Lower: []byte("k/00010"), Upper: []byte("k/00012")}))
		if !slices.Equal(got, []string{"k/00010", "k/00011"}) {
			t.Fatal(got)
		}
		if got = keysOf(t, s.Scan(Range{Upper: []byte{}})); got != nil {
			t.Fatal(got)
		}
		// The slices stay as they are, also after a break.
		var key, value []byte
		for key, value = range s.Scan(Range{Lower: []byte("k/00007")}).All() {
			break
		}
		keysOf(t, s.Scan(Range{}))
		if string(key) != "k/00007" || !bytes.Equal(value, bytes.Repeat([]byte{7}, 7)) {
			t.Fatal(key, value)
		}
		wrong := s.Scan(Range{Prefix: []byte("a"), Lower: []byte("b")})
		for range wrong.All() {
			t.Fatal("a record")
		}
		wantCode(t, wrong.Err(), InvalidArgument, "")
	})
}

func TestBatchesAndConditions(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		b := NewBatch()
		must(t, b.Put([]byte("a"), []byte("1")))
		must(t, b.Put([]byte("b"), []byte("2"), WriteOptions{TTL: time.Hour}))
		must(t, b.Delete([]byte("a")))
		if b.Len() != 3 {
			t.Fatal(b.Len())
		}
		must(t, s.Write(b))
		if got := keysOf(t, s.Scan(Range{})); !slices.Equal(got, []string{"b"}) {
			t.Fatal(got)
		}
		e, err := s.GetEntry([]byte("b"))
		must(t, err)
		b.Clear()
		must(t, b.RequireUnchanged(&s.Keyspace, []byte("b"), e.Version))
		must(t, b.RequireAbsent(&s.Keyspace, []byte("c")))
		must(t, b.Put([]byte("c"), nil))
		must(t, b.DeleteRangeIn(&s.Keyspace, []byte("a"), []byte("bz")))
		must(t, s.Write(b))
		wantCode(t, s.Write(b), Aborted, "Condition")
		wantCode(t, b.Put(make([]byte, 70_000), nil), InvalidArgument, "")
		wantCode(t, s.Write(b), InvalidArgument, "")
	})
}

func TestKeyspacesAndSnapshots(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		users, err := s.OpenKeyspace("users")
		must(t, err)
		must(t, s.Put([]byte("k"), []byte("0")))
		must(t, users.Put([]byte("k"), []byte("1")))
		snapshot, err := s.Snapshot()
		must(t, err)
		b := NewBatch()
		must(t, b.PutIn(users, []byte("k"), []byte("2")))
		must(t, b.DeleteIn(users, []byte("x")))
		must(t, s.Write(b))
		v, ok, err := users.Get([]byte("k"))
		wantValue(t, "2", v, ok, err)
		v, ok, err = snapshot.GetFrom(users, []byte("k"))
		wantValue(t, "1", v, ok, err)
		v, ok, err = snapshot.Get([]byte("k"))
		wantValue(t, "0", v, ok, err)
		for _, value := range snapshot.ScanOf(users, Range{}).All() {
			wantValue(t, "1", value, true, nil)
		}
		if got := keysOf(t, snapshot.Scan(Range{})); !slices.Equal(got, []string{"k"}) {
			t.Fatal(got)
		}
		snapshot.Close()
		snapshot.Close()
		_, _, err = snapshot.Get([]byte("k"))
		wantCode(t, err, FailedPrecondition, "Closed")
		closed := snapshot.Scan(Range{})
		for range closed.All() {
			t.Fatal("a record")
		}
		wantCode(t, closed.Err(), FailedPrecondition, "Closed")
		must(t, s.DropKeyspace(users))
		_, _, err = users.Get([]byte("k"))
		wantCode(t, err, NotFound, "Keyspace")
	})
}

func TestTransactions(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		must(t, s.Put([]byte("x"), []byte("100")))
		first, err := s.Begin()
		must(t, err)
		second, err := s.Begin()
		must(t, err)
		for _, tx := range []*Tx{first, second} {
			v, ok, err := tx.Get([]byte("x"))
			wantValue(t, "100", v, ok, err)
			must(t, tx.Put([]byte("x"), []byte("70")))
			must(t, tx.Put([]byte("y"), []byte("30")))
			must(t, tx.Delete([]byte("z")))
			must(t, tx.DeleteRangeIn(&s.Keyspace, []byte("p"), []byte("q")))
			if got := keysOf(t, tx.Scan(Range{})); !slices.Equal(got, []string{"x", "y"}) {
				t.Fatal(got)
			}
		}
		must(t, first.Commit())
		wantCode(t, second.Commit(), Aborted, "Conflict")
		wantCode(t, second.Put([]byte("x"), nil), FailedPrecondition, "Closed")
		second.Rollback()
		failed := errors.New("of the function")
		err = s.Update(context.Background(), func(tx *Tx) error {
			must(t, tx.Put([]byte("x"), []byte("0")))
			return failed
		})
		if err != failed {
			t.Fatal(err)
		}
		v, ok, err := s.Get([]byte("x"))
		wantValue(t, "70", v, ok, err)
	})
}

func TestUpdateCountsEachCall(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		var group sync.WaitGroup
		for range 4 {
			group.Add(1)
			go func() {
				defer group.Done()
				for range 100 {
					err := s.Update(context.Background(), func(tx *Tx) error {
						v, _, err := tx.Get([]byte("n"))
						if err != nil {
							return err
						}
						var n int
						fmt.Sscan(string(v), &n)
						return tx.Put([]byte("n"), fmt.Append(nil, n+1))
					})
					if err != nil {
						t.Error(err)
					}
				}
			}()
		}
		group.Wait()
		v, ok, err := s.Get([]byte("n"))
		wantValue(t, "400", v, ok, err)
	})
}

func TestUpdateEndsWithItsContext(t *testing.T) {
	s, err := NewMemTable(0)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	err = s.Update(ctx, func(tx *Tx) error {
		if calls++; calls == 3 {
			cancel()
		}
		_, _, err := tx.Get([]byte("k"))
		must(t, err)
		must(t, s.Put([]byte("k"), fmt.Append(nil, calls))) // A rival who is always faster.
		return tx.Put([]byte("k"), nil)
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, Aborted) || calls < 3 {
		t.Fatal(err, calls)
	}
}

func TestGoroutines(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		var group sync.WaitGroup
		for g := range 4 {
			group.Add(1)
			go func() {
				defer group.Done()
				for i := range 500 {
					key := fmt.Appendf(nil, "%d/%d", g, i)
					if err := s.Put(key, key); err != nil {
						t.Error(err)
					}
					v, ok, err := s.Get(key)
					if err != nil || !ok || !bytes.Equal(v, key) {
						t.Errorf("%q: %q, %v, %v", key, v, ok, err)
					}
					if i%100 == 0 {
						n := 0
						for range s.Scan(Range{Prefix: fmt.Appendf(nil, "%d/", g)}).All() {
							n++
						}
						if n != i+1 {
							t.Error(n, i+1)
						}
					}
				}
			}()
		}
		group.Wait()
	})
}

func TestWhatIsClosedSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, err := Open(path, Options{})
	must(t, err)
	must(t, s.Put([]byte("a"), []byte("1")))
	users, err := s.OpenKeyspace("users")
	must(t, err)
	tx, err := s.Begin()
	must(t, err)
	_, err = Open(path, Options{})
	wantCode(t, err, Busy, "Locked")
	if !strings.Contains(err.Error(), path) {
		t.Fatal(err)
	}
	reader, err := OpenReadOnly(path, Options{})
	must(t, err)
	v, ok, err := reader.Get([]byte("a"))
	wantValue(t, "1", v, ok, err)
	wantCode(t, reader.Put(nil, nil), FailedPrecondition, "ReadOnly")
	must(t, reader.Close())
	must(t, s.Flush())

	// Beside readers, which see either the value or the end.
	var group sync.WaitGroup
	for range 2 {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				_, _, err := s.Get([]byte("a"))
				if errors.Is(err, FailedPrecondition) {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	must(t, s.Close())
	group.Wait()
	must(t, s.Close())
	_, _, err = users.Get([]byte("a"))
	wantCode(t, err, FailedPrecondition, "Closed")
	wantCode(t, s.Put(nil, nil), FailedPrecondition, "Closed")
	_, _, err = tx.Get([]byte("a"))
	wantCode(t, err, FailedPrecondition, "Closed")
	_, err = Open(filepath.Join(path, "none"), Options{MustExist: true})
	wantCode(t, err, NotFound, "")
	must(t, Destroy(path))
	wantCode(t, Destroy(path), NotFound, "")
}

// Random operations on a database and on a map, with reopening.
func TestAgainstMap(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "db")
	model := map[string]string{}
	s, err := Open(path, Options{MemoryBudget: 4 << 20})
	must(t, err)
	key := func() []byte { return fmt.Append(nil, random.IntN(200)) }
	value := func() []byte { return bytes.Repeat([]byte("v"), random.IntN(300)) }
	for range 4000 {
		k, v := key(), value()
		switch random.IntN(40) {
		default:
			must(t, s.Put(k, v))
			model[string(k)] = string(v)
		case 0, 1, 2, 3, 4:
			must(t, s.Delete(k))
			delete(model, string(k))
		case 5, 6, 7:
			got, found, err := s.Get(k)
			must(t, err)
			if want, there := model[string(k)]; there != found || string(got) != want {
				t.Fatalf("%q: %q, not %q", k, got, want)
			}
		case 8:
			end := key()
			must(t, s.DeleteRange(k, end))
			maps.DeleteFunc(model, func(m, _ string) bool { return m >= string(k) && m < string(end) })
		case 9:
			must(t, s.Update(context.Background(), func(tx *Tx) error {
				got, _, err := tx.Get(k)
				if err != nil {
					return err
				}
				return tx.Put(k, append(got, 'x'))
			}))
			model[string(k)] += "x"
		case 10:
			must(t, s.Flush())
			must(t, s.Compact())
		case 11:
			must(t, s.Close())
			s, err = Open(path, Options{MemoryBudget: 4 << 20})
			must(t, err)
		}
	}
	got := map[string]string{}
	scan := s.Scan(Range{})
	for k, v := range scan.All() {
		got[string(k)] = string(v)
	}
	must(t, scan.Err())
	if !maps.Equal(got, model) {
		t.Fatalf("%d records, not %d", len(got), len(model))
	}
	must(t, s.Close())
}

// The child of TestAcknowledgedWritesSurviveSigkill: writes, and says what was acknowledged.
func TestMain(m *testing.M) {
	path := os.Getenv("BASALT_TEST_WRITER")
	if path == "" {
		os.Exit(m.Run())
	}
	s, err := Open(path, Options{})
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		if err := s.Put(fmt.Append(nil, i), fmt.Append(nil, i)); err != nil {
			panic(err)
		}
		fmt.Println(i)
	}
}

func TestAcknowledgedWritesSurviveSigkill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "BASALT_TEST_WRITER="+path)
	output, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	last := -1
	for {
		var i int
		if n, err := fmt.Fscanln(output, &i); n != 1 || err != nil {
			break // A line that is cut is not acknowledged.
		}
		if last = i; i == 500 {
			must(t, child.Process.Signal(syscall.SIGKILL))
		}
	}
	child.Wait()
	if last < 500 {
		t.Fatal(last)
	}
	s, err := Open(path, Options{})
	must(t, err)
	for i := range last {
		v, ok, err := s.Get(fmt.Append(nil, i))
		wantValue(t, fmt.Sprint(i), v, ok, err)
	}
	must(t, s.Close())
}

func TestNothingLeaks(t *testing.T) {
	use := func() {
		s, err := Open(":memory:", Options{MemoryBudget: 1 << 20})
		must(t, err)
		for i := range 50 {
			must(t, s.Put(fmt.Append(nil, i), bytes.Repeat([]byte("x"), 2000)))
		}
		_, _, err = s.Get([]byte("7"))
		must(t, err)
		_, err = s.Snapshot()
		must(t, err)
		_, err = s.Begin()
		must(t, err)
		must(t, NewBatch().Put([]byte("a"), nil))
		for range s.Scan(Range{}).All() {
			break
		}
	}
	resident := func() (kib int) {
		runtime.GC()
		statm, err := os.ReadFile("/proc/self/statm")
		must(t, err)
		var size, pages int
		fmt.Sscan(string(statm), &size, &pages)
		return pages * os.Getpagesize() / 1024
	}
	for range 50 {
		use()
	}
	before := resident()
	for range 300 {
		use()
	}
	// One leaked store is at least 100 KiB. Finalizers take their time, one after the other.
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if grown := resident() - before; grown < 300*100 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%d KiB", grown)
		}
	}
}

func TestTheManualShowsTheExample(t *testing.T) {
	source, err := os.ReadFile("basalt_test.go")
	must(t, err)
	manual, err := os.ReadFile("../../docs/go.md")
	must(t, err)
	_, example, _ := strings.Cut(string(source), "func ExampleOpen() {\n")
	example, _, _ = strings.Cut(example, "\t// Output:")
	example = strings.ReplaceAll(strings.TrimPrefix(example, "\t"), "\n\t", "\n")
	for _, name := range []string{"Open", "Options", "Tx", "Range"} {
		example = strings.ReplaceAll(example, " "+name+"(", " basalt."+name+"(")
		example = strings.ReplaceAll(example, "("+name+"{", "(basalt."+name+"{")
		example = strings.ReplaceAll(example, " "+name+"{", " basalt."+name+"{")
		example = strings.ReplaceAll(example, "*"+name+")", "*basalt."+name+")")
	}
	if !strings.Contains(string(manual), example) {
		t.Fatalf("docs/go.md does not quote this:\n%s", example)
	}
}

func BenchmarkGet(b *testing.B) {
	s, err := Open(":memory:", Options{})
	must(b, err)
	keys := make([][]byte, 10_000)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key/%08d", i)
		must(b, s.Put(keys[i], bytes.Repeat([]byte("v"), 100)))
	}
	b.ReportAllocs()
	for i := range b.N {
		if _, found, _ := s.Get(keys[i%len(keys)]); !found {
			b.Fatal("absent")
		}
	}
}

func ExampleOpen() {
	store, err := Open(":memory:", Options{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	err = store.Update(context.Background(), func(tx *Tx) error {
		if err := tx.Put([]byte("user/1"), []byte("Ada")); err != nil {
			return err
		}
		return tx.Put([]byte("user/2"), []byte("Grace"))
	})
	if err != nil {
		panic(err)
	}
	users := store.Scan(Range{Prefix: []byte("user/")})
	for key, value := range users.All() {
		fmt.Printf("%s is %s\n", key, value)
	}
	if err := users.Err(); err != nil {
		panic(err)
	}
	// Output:
	// user/1 is Ada
	// user/2 is Grace
}
