//! The engine as its callers see it: signed bodies go in through verification and admission, tables come out.

mod admission;
mod evidence;
mod fixtures;
mod hard_streams;
mod mutations;
mod permutations;
mod support;
