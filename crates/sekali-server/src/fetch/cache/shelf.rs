//! A bounded map: what was not used for the longest time makes room.

use std::collections::HashMap;

use super::Request;

/// So few entries that looking through all of them for the oldest costs nothing beside a fetch.
pub(super) struct Shelf<V> {
    entries: HashMap<Request, (u64, V)>,
    max_len: usize,
    /// Counts uses, since two may fall into one millisecond.
    uses: u64,
}

impl<V> Shelf<V> {
    pub(super) fn new(max_len: usize) -> Self {
        Self {
            entries: HashMap::new(),
            max_len,
            uses: 0,
        }
    }

    /// Returns an entry, which counts as a use.
    pub(super) fn get(&mut self, request: &Request) -> Option<&mut V> {
        self.uses += 1;
        let (used, value) = self.entries.get_mut(request)?;
        *used = self.uses;
        Some(value)
    }

    /// Puts an entry in, in place of an older one.
    pub(super) fn put(&mut self, request: Request, value: V) {
        self.uses += 1;
        if self.entries.len() >= self.max_len && !self.entries.contains_key(&request) {
            let oldest = self.entries.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(request, _)| request.clone()) {
                self.entries.remove(&oldest);
            }
        }
        self.entries.insert(request, (self.uses, value));
    }
}
