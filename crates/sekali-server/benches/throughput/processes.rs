//! What processes cost.

use std::collections::HashMap;

/// Returns the seconds of processor time of a process and everything below it.
pub(crate) fn processor_seconds(id: u32) -> f64 {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: HashMap<u32, (u32, u64)> = ids.filter_map(|id| Some((id, stat(id)?))).collect();
    let is_below = |mut process: u32| {
        while process != id {
            match all.get(&process) {
                Some((parent, _)) if *parent != 0 => process = *parent,
                _ => return false,
            }
        }
        true
    };
    let ticks = all.iter().filter(|(process, _)| is_below(**process));
    ticks.map(|(_, (_, ticks))| *ticks).sum::<u64>() as f64 / 100.0
}

/// Returns the parent of a process, and its time in hundredths of a second with that of children that ended.
fn stat(id: u32) -> Option<(u32, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // Behind the name: the state, the parent, and as 14th to 17th field of all the times, those of children last.
    let fields = text.rsplit(')').next()?.split_ascii_whitespace().skip(1);
    let fields: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
    let parent = u32::try_from(*fields.first()?).ok()?;
    Some((parent, fields.get(10..14)?.iter().sum()))
}

/// Returns how much memory a process holds.
pub(crate) fn resident_bytes(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes * 1024)
}
