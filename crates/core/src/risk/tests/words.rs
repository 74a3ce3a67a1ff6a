//! The risk that names and descriptions indicate.

use windlass_spec::RiskLevel::{self, Irreversible, Reversible, ReversibleWithDelay};

use super::super::{KnownTool, Source, ToolRisk};

fn described(name: &str, description: &str) -> RiskLevel {
    let tool = KnownTool {
        name,
        description,
        ..KnownTool::default()
    };
    ToolRisk::of(&tool).base().level
}

#[track_caller]
fn all(level: RiskLevel, names: &[&str]) {
    for name in names {
        assert_eq!(described(name, ""), level, "{name}");
    }
}

#[test]
fn documented_examples_have_documented_levels() {
    all(
        Reversible,
        &[
            "web_search",
            "read_file",
            "get_current_time",
            "memory_search",
        ],
    );
    all(ReversibleWithDelay, &["send_email"]);
    all(Irreversible, &["delete_file", "make_purchase"]);
}

#[test]
fn verb_is_found_at_any_position_in_any_notation() {
    all(
        Irreversible,
        &[
            "delete_file",
            "deleteFile",
            "file-delete",
            "files.delete",
            "FILES/DELETE",
            "s3DeleteObject",
            "deletes_file",
            "deleting_files",
            "bulk_delete",
            "removeItem",
        ],
    );
    all(
        Reversible,
        &["pods_list", "kubectl_get", "GitLabGetIssue", "web.search"],
    );
}

#[test]
fn participles_do_not_count_as_actions() {
    all(
        Reversible,
        &[
            "list_deleted_items",
            "get_archived_messages",
            "search_sent_mail",
            "list_merged_branches",
            "get_updates",
            "list_commits",
            "get_merge_request",
            "get_last_payment",
            "list_purchases",
        ],
    );
}

#[test]
fn graver_of_two_joined_verbs_counts() {
    all(
        ReversibleWithDelay,
        &["get_or_create", "find_or_add_label", "search_and_replace"],
    );
    all(
        Irreversible,
        &[
            "find_one_and_delete",
            "create_and_publish",
            "archive_or_delete",
        ],
    );
    all(
        Irreversible,
        &["list_delete", "query_delete", "view_drop_and_delete"],
    );
}

#[test]
fn ambiguous_names_have_the_right_level() {
    all(
        ReversibleWithDelay,
        &[
            "share_file",
            "append_to_file",
            "undelete",
            "untrash_message",
            "unpublish_post",
            "lock",
            "unlock_issue",
            "archive",
            "grant_role",
            "post",
            "post_message",
            "invite_user_to_slack",
            "reserve_hotel",
            "mark_as_read",
            "resend_invitation",
            "unresolve_thread",
            "check_in_file",
            "sign_in",
            "log_in",
            "restore_backup",
        ],
    );
    all(
        Irreversible,
        &[
            "schedule_transaction",
            "update_password",
            "reset",
            "clear",
            "merge",
            "merge_pull_request",
            "force_push",
            "git_push_force",
            "publish",
            "purchase",
            "transfer",
            "transfer_money",
            "send_money",
            "revoke",
            "execute",
            "eval",
            "run_query",
            "run_command",
            "evaluate_javascript",
            "schedule_key_deletion",
            "get_rid_of_user",
            "factory_reset",
            "shut_down_server",
            "format_disk",
            "checkout_cart",
            "capture_payment",
            "http_request",
            "sign_document",
        ],
    );
    all(
        Reversible,
        &["get_webpage", "format_code", "git_log", "get_order_status"],
    );
}

#[test]
fn query_tool_described_as_read_only_is_reversible() {
    assert_eq!(
        described("run_query", "Run a read-only SQL query."),
        Reversible
    );
    assert_eq!(
        described("execute_sql", "Runs SELECT statements only."),
        Reversible
    );
    assert_eq!(
        described("execute_sql", "Not read-only: runs any SQL."),
        Irreversible
    );
    // Commands are not queries, whatever their description promises.
    assert_eq!(
        described("run_shell", "Run a read-only command."),
        Irreversible
    );
}

#[test]
fn a_description_raises_what_the_name_says() {
    assert_eq!(
        described("move_item", "Moves it. This cannot be undone."),
        Irreversible
    );
    assert_eq!(
        described("close_account", "Closes it permanently."),
        Irreversible
    );
    assert_eq!(
        described("update_dns", "Create, change or delete records."),
        Irreversible
    );
    assert_eq!(
        described("get_label", "Gets a label by name or creates it."),
        ReversibleWithDelay
    );
    assert_eq!(
        described("get_ready", "Deletes all temporary files."),
        Irreversible
    );
    assert_eq!(
        described("save_note", "Replace the entire content of a note."),
        Irreversible
    );
}

#[test]
fn a_description_does_not_lower_what_the_name_says() {
    assert_eq!(described("delete_file", "Reads a file."), Irreversible);
    assert_eq!(
        described("delete_file", "Safe, read-only, reversible."),
        Irreversible
    );
    assert_eq!(
        described("update_file", "Gets a file."),
        ReversibleWithDelay
    );
}

#[test]
fn negated_warning_does_not_count() {
    assert_eq!(
        described(
            "move_item",
            "Moves it; this does not permanently delete it."
        ),
        ReversibleWithDelay
    );
    assert_eq!(
        described("update_page", "A non-destructive edit."),
        ReversibleWithDelay
    );
    assert_eq!(
        described("list_users", "List users that were permanently deleted."),
        Reversible
    );
}

#[test]
fn description_decides_if_the_name_says_nothing() {
    assert_eq!(described("foo", "Returns the weather."), Reversible);
    assert_eq!(
        described("foo", "This tool can be used to delete users."),
        Irreversible
    );
    assert_eq!(
        described("foo", "Use this to create a widget."),
        ReversibleWithDelay
    );
    assert_eq!(described("foo", "Runs a shell command."), Irreversible);
}

#[test]
fn unknown_tool_is_irreversible() {
    for name in ["", "foo", "frobnicate", "删除文件", "🦀", "\u{202e}", "x1"] {
        let tool = ToolRisk::of(&KnownTool::named(name));
        assert_eq!(tool.base().level, Irreversible, "{name}");
        assert_eq!(tool.base().source, Source::Nothing, "{name}");
    }
}
