// Measures one perfect hash function of another library on the keys of phash_bench, and prints one
// line of JSON: what phash_bench's own subjects print of themselves.
//
//     phash_peers SUBJECT KEYS THREADS SEED

use dyn_size_of::GetSize;
use ph::phast::{bits_per_seed_to_100_bucket_size, DefaultCompressedArray, Function2, Params, SeedChooser, SeedOnly,
                ShiftOnlyWrapped};
use ph::seeds::Bits8;
use ph::BuildSeededHasher;
use ptr_hash::{CompactPtrHash, DefaultPtrHash, FastPtrHash, PtrHashParams};
use std::hint::black_box;
use std::time::Instant;

/// More queries say no more.
const QUERIES_MAX: usize = 10_000_000;

/// The hash that Basalt mixes 64-bit keys with; the library's default is made for strings.
#[derive(Clone, Copy, Default)]
struct MixKeys;

struct MixHasher(u64);

impl BuildSeededHasher for MixKeys {
    type Hasher = MixHasher;
    #[inline(always)]
    fn build_hasher(&self, seed: u64) -> MixHasher {
        MixHasher(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }
}

impl std::hash::Hasher for MixHasher {
    #[inline(always)]
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u64")
    }
    #[inline(always)]
    fn write_u64(&mut self, key: u64) {
        let key = key.wrapping_add(self.0);
        let mixed = (key ^ (key >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        self.0 = mixed ^ (mixed >> 32);
    }
    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The keys: splitmix64 from `seed` on, as in phash_keys.h.
fn keys(count: usize, seed: u64) -> Vec<u64> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        })
        .collect()
}

fn status_bytes(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("no /proc/self/status");
    let line = status.lines().find(|line| line.starts_with(field)).expect("no such field");
    1024.0 * line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()
}

fn nanoseconds(start: Instant, keys: usize) -> f64 {
    start.elapsed().as_secs_f64() * 1e9 / keys as f64
}

/// The least of some repetitions: the process is not alone on its machine.
fn best(repetitions: usize, mut run: impl FnMut() -> f64) -> f64 {
    (0..repetitions).map(|_| run()).fold(f64::INFINITY, f64::min)
}

fn measure(
    keys: &[u64],
    build: impl FnOnce() -> (f64, Box<dyn Queries>),
) {
    let before = status_bytes("VmRSS:");
    let start = Instant::now();
    let (bits, function) = build();
    let build_ns = nanoseconds(start, keys.len());
    let asked = &keys[..keys.len().min(QUERIES_MAX)];
    let memory = (status_bytes("VmHWM:") - before) / keys.len() as f64;
    println!(
        "{{\"bits\":{bits},\"build_ns\":{build_ns},\"memory_bytes\":{memory},\"loop_ns\":{},\
         \"dependent_ns\":{},\"streamed_ns\":{}}}",
        best(3, || function.in_a_loop(asked)),
        best(2, || function.dependent(asked)),
        best(3, || function.streamed(asked)),
    );
}

/// Each gives nanoseconds a key.
trait Queries {
    fn in_a_loop(&self, keys: &[u64]) -> f64;
    fn dependent(&self, keys: &[u64]) -> f64;
    fn streamed(&self, keys: &[u64]) -> f64;
}

fn in_a_loop(keys: &[u64], index: impl Fn(u64) -> usize) -> f64 {
    let start = Instant::now();
    let mut sum = 0;
    for &key in keys {
        sum += index(key);
    }
    black_box(sum);
    nanoseconds(start, keys.len())
}

/// Each key is known only when the number of the one before is; it is a key of the set.
fn dependent(keys: &[u64], index: impl Fn(u64) -> usize) -> f64 {
    let start = Instant::now();
    let mut last = 0;
    for &key in keys {
        last = index(key ^ (last as u64 >> 40));
    }
    black_box(last);
    nanoseconds(start, keys.len())
}

macro_rules! ptr_hash_queries {
    ($type:ty) => {
        impl Queries for $type {
            fn in_a_loop(&self, keys: &[u64]) -> f64 {
                in_a_loop(keys, |key| self.index(&key))
            }
            fn dependent(&self, keys: &[u64]) -> f64 {
                dependent(keys, |key| self.index(&key))
            }
            fn streamed(&self, keys: &[u64]) -> f64 {
                let start = Instant::now();
                black_box(self.index_stream::<32, _>(keys).sum::<usize>());
                nanoseconds(start, keys.len())
            }
        }
    };
}
ptr_hash_queries!(FastPtrHash);
ptr_hash_queries!(DefaultPtrHash);
ptr_hash_queries!(CompactPtrHash);

type PHast<SC> = Function2<Bits8, SC, DefaultCompressedArray, MixKeys>;

// PHast has no batches: its loop stands for them.
impl<SC: SeedChooser> Queries for PHast<SC> {
    fn in_a_loop(&self, keys: &[u64]) -> f64 {
        in_a_loop(keys, |key| self.get(&key))
    }
    fn dependent(&self, keys: &[u64]) -> f64 {
        dependent(keys, |key| self.get(&key))
    }
    fn streamed(&self, keys: &[u64]) -> f64 {
        self.in_a_loop(keys)
    }
}

fn phast<SC: SeedChooser + Sync + 'static>(
    keys: &[u64],
    threads: usize,
    chooser: SC,
) -> (f64, Box<dyn Queries>) {
    let params = Params::new(Bits8, bits_per_seed_to_100_bucket_size(8));
    let function: PHast<SC> =
        Function2::with_slice_p_threads_hash_sc(keys, &params, threads, MixKeys, chooser);
    (8.0 * function.size_bytes() as f64 / keys.len() as f64, Box::new(function))
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() != 5 {
        eprintln!("phash_peers SUBJECT KEYS THREADS SEED");
        std::process::exit(2);
    }
    let count: usize = arguments[2].parse().expect("KEYS is a number");
    let threads: usize = arguments[3].parse().expect("THREADS is a number");
    let keys = &keys(count, arguments[4].parse().expect("SEED is a number"));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().unwrap();

    match arguments[1].as_str() {
        "ptr_hash_fast" => measure(keys, || {
            let function = FastPtrHash::new(keys, PtrHashParams::default_fast());
            let (pilots, remap) = function.bits_per_element();
            (pilots + remap, Box::new(function))
        }),
        "ptr_hash" => measure(keys, || {
            let function = DefaultPtrHash::new(keys, PtrHashParams::default());
            let (pilots, remap) = function.bits_per_element();
            (pilots + remap, Box::new(function))
        }),
        "ptr_hash_compact" => measure(keys, || {
            let function = CompactPtrHash::new(keys, PtrHashParams::default_compact());
            let (pilots, remap) = function.bits_per_element();
            (pilots + remap, Box::new(function))
        }),
        "phast" => measure(keys, || phast(keys, threads, SeedOnly)),
        "phast_plus" => measure(keys, || phast(keys, threads, ShiftOnlyWrapped::<2>)),
        name => {
            eprintln!("phash_peers: no subject is called {name}");
            std::process::exit(2);
        }
    }
}
