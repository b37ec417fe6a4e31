//! Runs targets on files, without libFuzzer: `cargo run --no-default-features --example replay TARGET FILE…`

use std::process::ExitCode;

use neardup_fuzz::TARGETS;

fn main() -> ExitCode {
    let mut given = std::env::args().skip(1);
    let poll_reads = given.next().unwrap_or_default();
    let Some((_, run)) = TARGETS.into_iter().find(|(name, _)| *name == poll_reads) else {
        eprintln!("usage: replay TARGET FILE…, with one of {:?}", TARGETS.map(|(name, _)| name));
        return ExitCode::FAILURE;
    };
    for path in given {
        println!("{path}");
        run(&std::fs::read(&path).expect("the file can be read"));
    }
    ExitCode::SUCCESS
}
