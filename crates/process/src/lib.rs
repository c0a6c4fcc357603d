//! Child processes: groups, trees, pipes, output caps and a scrubbed environment.
