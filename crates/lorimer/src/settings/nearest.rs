//! The nearest right name for a wrong one.

/// The candidate with the fewest edits, when those are few for its length.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(wrong, candidate), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= 3.max(candidate.len() / 3))
        .map(|(_, candidate)| candidate)
}
