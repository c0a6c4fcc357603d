//! The append-only session log: fold, derived messages, repair, and its files on disk.
