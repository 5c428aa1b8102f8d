//! Classes of faults that systems of this kind have had. Each is shown to be impossible here, or `coverage` says why it
//! cannot come up.

mod keys;
mod running;
mod secrets;
