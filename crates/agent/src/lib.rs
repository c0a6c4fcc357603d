//! The turn and step loop: inbox, prompt assembly, instructions, retries and pruning.
