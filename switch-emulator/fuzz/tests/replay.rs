//! The checks of the fuzz targets without libFuzzer, for every run of the tests: the inputs of `corpus` and
//! `regressions`, and inputs made from fixed seeds. The verdict is reproducible.
//!
//! `replay` replays for all targets, `replay TARGET …` for these: each in a process of its own, since the checks count
//! the live bytes of a whole process.
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, panic};

use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use zodiac_fuzz::{run, StepSet};

/// Names of the targets, and of their folders.
const TARGETS: [(&str, StepSet); 4] = [
    ("frames", StepSet::Frames),
    ("openflow", StepSet::OpenFlow),
    ("console", StepSet::Console),
    ("openflow13", StepSet::OpenFlow13),
];
/// Inputs that are made for each target.
const MADE: u64 = 1_000;
/// Length of the longest input of random bytes.
const LONGEST: usize = 1_024;
/// Bytes of a file that are changed at most.
const MOST_CHANGES: usize = 4;
/// Has this process replay for one target.
const ALONE: &str = "--alone";

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Input {
    /// Of a file, its path.
    name: String,
    bytes: Vec<u8>,
    made: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match &arguments[..] {
        [option, target] if option == ALONE => replay(target),
        // Options are for the harness of other tests, words choose tests by their names.
        _ => replay_each(
            &arguments
                .iter()
                .filter(|word| !word.starts_with('-'))
                .map(String::as_str)
                .collect::<Vec<_>>(),
        ),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("replay: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Replays for the targets whose names contain one of these words, at once. Returns whether everything held.
fn replay_each(words: &[&str]) -> Outcome<bool> {
    let chosen = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));
    let mut processes = Vec::new();
    for (name, _) in TARGETS.iter().filter(|(name, _)| chosen(name)) {
        processes.push(
            Command::new(env::current_exe()?)
                .args([ALONE, name])
                .spawn()?,
        );
    }
    let mut held = true;
    for mut process in processes {
        held &= process.wait()?.success();
    }
    Ok(held)
}

/// Replays for one target. Returns whether everything held.
fn replay(target: &str) -> Outcome<bool> {
    let (index, steps) = TARGETS
        .iter()
        .enumerate()
        .find_map(|(index, (name, steps))| (*name == target).then_some((index as u64, *steps)))
        .ok_or("no such target")?;
    let mut inputs = files("regressions", target)?;
    let corpus = files("corpus", target)?;
    let made: Vec<Input> = (0..MADE)
        .map(|number| made(index, number, &corpus))
        .collect();
    inputs.extend(corpus);
    let files = inputs.len();
    inputs.extend(made);
    let mut failed = 0;
    for input in &inputs {
        if panic::catch_unwind(|| run(&input.bytes, steps)).is_err() {
            failed += 1;
            report(target, input)?;
        }
    }
    println!("replay: {target}: {files} files, {MADE} inputs made: {failed} failed");
    Ok(failed == 0)
}

/// A path as seen from the project's folder, where `make` is called.
fn told(path: &Path) -> String {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let seen = project
        .canonicalize()
        .ok()
        .and_then(|project| path.strip_prefix(project).ok());
    seen.unwrap_or(path).display().to_string()
}

/// Returns the inputs of a folder for a target, by name. There are some: a folder that is not found would check
/// nothing.
fn files(folder: &str, target: &str) -> Outcome<Vec<Input>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(folder)
        .join(target);
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Outcome<_>>()?;
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{}: no inputs", folder.display()).into());
    }
    paths
        .into_iter()
        .map(|path| {
            Ok(Input {
                name: told(&path),
                bytes: fs::read(&path)?,
                made: false,
            })
        })
        .collect()
}

/// Returns an input that only its number and the corpus decide: random bytes, or the beginning of one file and the end
/// of another with some bytes changed.
fn made(target: u64, number: u64, corpus: &[Input]) -> Input {
    let mut random = ChaCha8Rng::seed_from_u64(number);
    random.set_stream(target);
    let mut below = |end: usize| (random.next_u64() % end.max(1) as u64) as usize;
    let mut bytes;
    if number % 4 == 0 {
        bytes = vec![0; below(LONGEST)];
        bytes.fill_with(|| below(256) as u8);
    } else {
        let head = &corpus[below(corpus.len())].bytes;
        let tail = &corpus[below(corpus.len())].bytes;
        bytes = head[..below(head.len() + 1)].to_vec();
        bytes.extend_from_slice(&tail[below(tail.len() + 1)..]);
        for _ in 0..below(MOST_CHANGES + 1) {
            let place = below(bytes.len());
            let value = below(256) as u8;
            if let Some(byte) = bytes.get_mut(place) {
                *byte = value;
            }
        }
    }
    Input {
        name: format!("made-{number}"),
        bytes,
        made: true,
    }
}

/// Returns which input failed, and how to have it once more.
fn report(target: &str, input: &Input) -> Outcome<()> {
    eprintln!("replay: {target} failed with {}", input.name);
    let mut path = input.name.clone();
    if input.made {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{target}-{}", input.name));
        fs::write(&file, &input.bytes)?;
        path = told(&file);
        eprintln!("replay: keep it with: make fuzz ARGS='keep {target} {path} what-failed'");
    }
    eprintln!("replay: reproduce with: make fuzz ARGS='{target} {path}'");
    Ok(())
}
