//! Cases from the field, from the memory of ids to secrets in logs; `coverage` has the list of their letters.

mod c19;
mod c20;
mod c21;
mod c22;
mod c23;
mod c25;
mod c26;
mod c27;
mod c28;
mod c30;
mod c36;
