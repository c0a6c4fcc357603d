//! The Tool trait, the registry, the guarded pipeline and the parallel scheduler.
