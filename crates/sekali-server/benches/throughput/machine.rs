//! What the figures were measured on: the machine, and the versions of everything that ran.

use std::path::Path;
use std::process::Command;

use sekali_testkit::program;

const PROGRAMS: [(&str, &str, &str, &str); 6] = [
    ("psql", "postgresql", "--version", "PostgreSQL"),
    ("mariadbd", "mariadb-server", "--version", "MariaDB"),
    ("redis-server", "redis-server", "--version", "Redis"),
    ("node", "nodejs", "--version", "Node.js"),
    ("php", "php-cli", "--version", "PHP"),
    ("python3", "python3", "--version", "Python"),
];

/// Returns a sentence about it.
pub(crate) fn describe() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value_of = |name: &str, text: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_once(':'));
        value.map(|(_, value)| value.trim().to_owned())
    };
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = value_of("MemTotal", &memory).and_then(|text| {
        let kilobytes: u64 = text.trim_end_matches(" kB").parse().ok()?;
        Some(kilobytes / (1024 * 1024))
    });
    let versions = PROGRAMS.map(|(name, package, word, title)| {
        let mut command = Command::new(program(name, package, &[]));
        let text = sekali_testkit::run(command.arg(word));
        format!("{title} {}", version_of(&text))
    });
    format!(
        "{} × {}, {} GB of memory, Linux {}; {}; {}.",
        std::thread::available_parallelism().map_or(0, usize::from),
        value_of("model name", &cpus).unwrap_or_default(),
        memory.unwrap_or_default(),
        kernel.trim(),
        versions.join(", "),
        packages()
    )
}

/// Returns the first number with dots.
fn version_of(text: &str) -> &str {
    let is_outside = |character: char| !character.is_ascii_digit() && character != '.';
    let mut words = text.split(is_outside);
    words
        .find(|word| word.contains('.') && word.starts_with(|first: char| first.is_ascii_digit()))
        .unwrap_or_default()
}

/// Returns the peers' own libraries, as they are pinned.
fn packages() -> String {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/peers");
    let read = |name: &str| std::fs::read_to_string(peers.join(name)).unwrap_or_default();
    let (node, python) = (read("package.json"), read("requirements.txt"));
    let node: serde_json::Value = serde_json::from_str(&node).unwrap_or_default();
    let node = node["dependencies"].as_object().into_iter().flatten();
    let node = node.map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or("")));
    let named = ["asyncpg", "fastapi", "uvicorn", "uvloop"];
    let python = python.lines().filter_map(|line| line.split_once("=="));
    let python = python.filter(|(name, _)| named.contains(name));
    let python = python.map(|(name, version)| format!("{name} {version}"));
    node.chain(python).collect::<Vec<_>>().join(", ")
}
