//! What the fuzz targets share: requests out of bytes, sources with secrets that no input knows, and reading.
//!
//! Nothing here decides whether an input is good; the targets do.

#![forbid(unsafe_code)]

mod elements;
mod input;
mod reading;
mod source;

pub use elements::{Found, expected};
pub use input::{Documents, Input, NOW_MS};
pub use reading::read;
pub use source::{Source, WINDOW, is_unproven, secrets};
