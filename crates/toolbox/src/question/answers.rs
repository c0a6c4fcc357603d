//! What makes a question askable and an answer one.

use std::collections::HashSet;

use lorimer_tools::ToolError;

use super::{Answer, Question};

/// Refuses questions that nobody could answer.
pub(super) fn check_questions(questions: &[Question]) -> Result<(), ToolError> {
    let invalid = |problem: String| {
        ToolError::typed("ToolArgsError", "INVALID_ARGS", format!("invalid arguments: {problem}"))
    };
    if questions.is_empty() {
        return Err(ToolError::typed("AskError", "EMPTY_QUESTIONS", "there is no question"));
    }
    let mut ids = HashSet::new();
    for question in questions {
        if question.id.trim().is_empty() || question.question.trim().is_empty() {
            return Err(invalid("a question needs an \"id\" and a \"question\"".to_owned()));
        }
        if !ids.insert(question.id.as_str()) {
            return Err(invalid(format!("two questions have the id \"{}\"", question.id)));
        }
        let mut labels = HashSet::new();
        for option in question.options.iter().flatten() {
            if option.label.trim().is_empty() || !labels.insert(option.label.as_str()) {
                return Err(invalid(format!(
                    "the options of \"{}\" need labels, and different ones",
                    question.id
                )));
            }
        }
    }
    Ok(())
}

/// What is wrong with answers, for whoever gave them.
pub(super) fn check_answers(questions: &[Question], answers: &[Answer]) -> Result<(), String> {
    let ids = |text: Vec<&str>| text.join(", ");
    let wanted: Vec<&str> = questions.iter().map(|question| question.id.as_str()).collect();
    let given: Vec<&str> = answers.iter().map(|answer| answer.id.as_str()).collect();
    if wanted != given {
        return Err(format!("answers are due for {} in this order, not for {}", ids(wanted), ids(given)));
    }
    questions.iter().zip(answers).try_for_each(|(question, answer)| check_answer(question, answer))
}

fn check_answer(question: &Question, answer: &Answer) -> Result<(), String> {
    let id = &question.id;
    let labels: HashSet<&str> =
        question.options.iter().flatten().map(|option| option.label.as_str()).collect();
    let mut chosen = HashSet::new();
    for label in &answer.selected {
        if !labels.contains(label.as_str()) {
            return Err(format!("\"{id}\" has no option \"{label}\""));
        }
        if !chosen.insert(label.as_str()) {
            return Err(format!("\"{id}\" has option \"{label}\" twice"));
        }
    }
    if answer.custom.as_ref().is_some_and(|words| words.trim().is_empty()) {
        return Err(format!("\"{id}\" has a blank answer; leave \"custom\" out to skip the question"));
    }
    let parts = answer.selected.len() + usize::from(answer.custom.is_some());
    if question.multi_select != Some(true) && parts > 1 {
        return Err(format!("\"{id}\" takes one option or one answer in words"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::QuestionOption;

    fn question(multi_select: bool) -> Question {
        let option = |label: &str| QuestionOption { label: label.to_owned(), description: None };
        Question {
            id: "q".to_owned(),
            question: "Which?".to_owned(),
            header: None,
            options: Some(vec![option("a"), option("b")]),
            multi_select: Some(multi_select),
        }
    }

    fn answer(selected: &[&str], custom: Option<&str>) -> Answer {
        Answer {
            id: "q".to_owned(),
            selected: selected.iter().map(|label| (*label).to_owned()).collect(),
            custom: custom.map(str::to_owned),
        }
    }

    #[test]
    fn answers_fit_their_questions_or_say_why_not() {
        let one = [question(false)];
        let many = [question(true)];
        for fits in [answer(&["a"], None), answer(&[], Some("c")), answer(&[], None)] {
            assert_eq!(check_answers(&one, &[fits]), Ok(()));
        }
        assert_eq!(check_answers(&many, &[answer(&["b", "a"], Some("and c"))]), Ok(()));
        let misfits = [
            (answer(&["c"], None), "\"q\" has no option \"c\""),
            (answer(&["a", "b"], None), "\"q\" takes one option or one answer in words"),
            (answer(&["a"], Some("x")), "\"q\" takes one option or one answer in words"),
            (answer(&["a", "a"], None), "\"q\" has option \"a\" twice"),
            (answer(&[], Some(" ")), "\"q\" has a blank answer; leave \"custom\" out to skip the question"),
        ];
        for (misfit, why) in misfits {
            assert_eq!(check_answers(&one, &[misfit]), Err(why.to_owned()));
        }
        assert_eq!(check_answers(&one, &[]), Err("answers are due for q in this order, not for ".to_owned()));
    }

    #[test]
    fn questions_need_ids_and_labels_of_their_own() {
        assert!(check_questions(&[question(false)]).is_ok());
        let text = |questions: &[Question]| check_questions(questions).expect_err("refused").message;
        assert_eq!(text(&[]), "there is no question");
        assert_eq!(
            text(&[question(false), question(false)]),
            "invalid arguments: two questions have the id \"q\""
        );
        let mut twice = question(false);
        twice.options.iter_mut().flatten().for_each(|option| "same".clone_into(&mut option.label));
        assert_eq!(text(&[twice]), "invalid arguments: the options of \"q\" need labels, and different ones");
    }
}
