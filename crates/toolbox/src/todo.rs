//! The `todo_write` tool: the model's list of what is to be done.

use std::collections::HashSet;

use lorimer_protocol::{CallView, ContentBlock, Draft, TodoItem, TodoStatus, TodoWrite, ToolCallKind};
use lorimer_tools::{Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keeps the todo list. Each call replaces the whole list; several items may be in progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct TodoWriteTool;

/// Arguments of `todo_write`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct TodoWriteArgs {
    /// The whole list, in order.
    todos: Vec<TodoArg>,
}

/// One item as the model gives it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct TodoArg {
    /// What is to be done, in a few words. No two items are the same.
    content: String,
    /// How far it is.
    status: StatusArg,
}

/// How far an item is, as the model gives it.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusArg {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

impl From<StatusArg> for TodoStatus {
    fn from(status: StatusArg) -> Self {
        match status {
            StatusArg::Pending => Self::Pending,
            StatusArg::InProgress => Self::InProgress,
            StatusArg::Completed => Self::Completed,
        }
    }
}

/// How many items of each status the list has now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TodoCounts {
    /// Not begun.
    pub pending: u64,
    /// Being worked on.
    pub in_progress: u64,
    /// Done.
    pub completed: u64,
}

impl TodoCounts {
    fn of(todos: &[TodoItem]) -> Self {
        let count = |status| todos.iter().filter(|todo| todo.status == status).count() as u64;
        Self {
            pending: count(TodoStatus::Pending),
            in_progress: count(TodoStatus::InProgress),
            completed: count(TodoStatus::Completed),
        }
    }
}

impl Tool for TodoWriteTool {
    type Args = TodoWriteArgs;
    type Output = TodoCounts;

    fn name(&self) -> &str {
        "todo_write"
    }

    fn description(&self) -> String {
        "Replaces the todo list that the user sees. Use it for work of several steps: set an item to `in_progress` \
         before you begin it and to `completed` as soon as it is done."
            .to_owned()
    }

    async fn execute(&self, args: &TodoWriteArgs, context: &ToolContext) -> Result<TodoCounts, ToolError> {
        check(&args.todos)?;
        let todos: Vec<TodoItem> = args
            .todos
            .iter()
            .map(|todo| TodoItem { content: todo.content.clone(), status: todo.status.into() })
            .collect();
        let counts = TodoCounts::of(&todos);
        let appended = context.session.append(Draft::new(&TodoWrite { todos }));
        appended.map_err(|error| ToolError::plain(error.to_string()))?;
        Ok(counts)
    }

    fn render(&self, _args: &TodoWriteArgs, output: &TodoCounts) -> Vec<ContentBlock> {
        vec![ContentBlock::text(format!(
            "Updated todo list: {} pending, {} in progress, {} completed.",
            output.pending, output.in_progress, output.completed
        ))]
    }

    fn present_call(&self, _args: &TodoWriteArgs) -> Option<CallView> {
        Some(CallView::Generic {
            title: "Update todo list".to_owned(),
            kind: Some(ToolCallKind::Other),
            raw_input: None,
            content: None,
            locations: None,
        })
    }
}

fn check(todos: &[TodoArg]) -> Result<(), ToolError> {
    let mut seen = HashSet::new();
    for (at, todo) in todos.iter().enumerate() {
        if todo.content.trim().is_empty() {
            return Err(ToolError::plain(format!("todos[{at}].content must be a non-empty string")));
        }
        if !seen.insert(todo.content.as_str()) {
            return Err(ToolError::plain(format!(
                "todos[{at}].content repeats an earlier item: \"{}\"",
                todo.content
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::files::harness::Desk;

    #[tokio::test]
    async fn the_list_is_counted_and_logged() {
        let desk = Desk::new();
        let outcome = desk
            .call(
                "todo_write",
                json!({"todos": [
                    {"content": "read the code", "status": "in_progress"},
                    {"content": "watch the build", "status": "in_progress"},
                    {"content": "write the fix", "status": "pending", "extra": 1},
                ]}),
            )
            .await;
        assert_eq!(outcome.text, "Updated todo list: 1 pending, 2 in progress, 0 completed.");
        assert_eq!(outcome.meta, None);
        let logged = desk.session.with_log(|log| log.todos().to_vec());
        assert_eq!(logged.len(), 3);
        assert_eq!(logged[2], TodoItem { content: "write the fix".to_owned(), status: TodoStatus::Pending });
        desk.call("todo_write", json!({"todos": []})).await;
        assert!(desk.session.with_log(|log| log.todos().is_empty()));
    }

    #[tokio::test]
    async fn bad_lists_change_nothing() {
        let desk = Desk::new();
        let item = |content: &str| json!({"content": content, "status": "pending"});
        for (todos, text) in [
            (json!([item("a"), item(" ")]), "Error: todos[1].content must be a non-empty string"),
            (json!([item("a"), item("a")]), "Error: todos[1].content repeats an earlier item: \"a\""),
        ] {
            let outcome = desk.call("todo_write", json!({ "todos": todos })).await;
            assert_eq!(outcome.text, text);
            assert_eq!(outcome.code, None);
        }
        let outcome = desk.call("todo_write", json!({"todos": [{"content": "a", "status": "done"}]})).await;
        assert_eq!(outcome.code.as_deref(), Some("INVALID_ARGS"));
        assert!(desk.session.with_log(|log| log.todos().is_empty()));
    }

    #[test]
    fn the_pending_card() {
        let view = desk_view();
        assert_eq!(view, json!({"card": "generic", "title": "Update todo list", "kind": "other"}));
    }

    fn desk_view() -> serde_json::Value {
        let view = TodoWriteTool.present_call(&TodoWriteArgs { todos: Vec::new() });
        serde_json::to_value(view).unwrap()
    }
}
