//! The tools a model may call: files, search, shell and todo list.
